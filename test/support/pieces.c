/* Buffers of several pieces with guards around and between them, private or in the arena. */
#include "support/pieces.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

bool pieces_take(struct pieces *b, tutti_comm *world, bool shared, size_t offset)
{
    size_t bytes = b->bytes + 2 * PIECES_GUARD + offset;
    b->offset = offset;
    b->shared = shared;
    b->mem = shared ? tutti_alloc(bytes, world) : aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (!b->mem && shared) {                         /* the span is full: take private memory */
        b->shared = false;
        b->mem = aligned_alloc(64, (bytes + 63) / 64 * 64);
    }
    if (b->mem)
        pieces_fill(b, b->mem, b->mem, offset);
    return b->mem;
}

size_t pieces_room(const struct pieces *b) { return b->bytes + 2 * PIECES_GUARD + b->offset; }

void pieces_fill(struct pieces *b, unsigned char *mem, unsigned char *seen, size_t offset)
{
    b->mem = mem;
    b->seen = seen;
    b->offset = offset;
    memset(seen, PIECES_BYTE, pieces_room(b));
}

bool pieces_has(const struct pieces *b, const void *at)
{
    return b->mem && (uintptr_t)at >= (uintptr_t)b->mem
        && (uintptr_t)at - (uintptr_t)b->mem < pieces_room(b);
}

unsigned char *pieces_see(const struct pieces *b, const void *at)
{
    return b->seen + ((uintptr_t)at - (uintptr_t)b->mem);
}

bool pieces_take_registered(struct pieces *b, tutti_comm *world, size_t offset)
{
    if (!pieces_take(b, world, false, offset))
        return false;
    int r = tutti_register(b->mem, pieces_room(b), world);
    b->registered = r == 0;
    return r == 0 || r == -ENOSPC;                   /* -ENOSPC: the span is full: stay private */
}

void pieces_give(struct pieces *b, tutti_comm *world)
{
    if (b->registered && tutti_unregister(b->mem, world) < 0)
        abort();
    if (b->shared)
        tutti_free(b->mem, world);
    else
        free(b->mem);
    *b = (struct pieces){ 0 };
}

void pieces_add(struct pieces *b, size_t bytes, size_t gap)
{
    b->at[b->n] = b->bytes;
    b->length[b->n++] = bytes;
    b->bytes += bytes + gap;
}

unsigned char *pieces_piece(const struct pieces *b, int i)
{
    return b->mem + PIECES_GUARD + b->offset + b->at[i];
}

static bool guards(const unsigned char *at, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (at[i] != PIECES_BYTE)
            return false;
    return true;
}

bool pieces_whole(const struct pieces *b)
{
    if (!b->mem)
        return true;
    const unsigned char *at = b->seen, *end = b->seen + pieces_room(b);
    for (int i = 0; i < b->n; i++) {
        const unsigned char *piece = pieces_see(b, pieces_piece(b, i));
        if (!guards(at, (size_t)(piece - at)))
            return false;
        at = piece + b->length[i];
    }
    return guards(at, (size_t)(end - at));
}

void tile_fill(unsigned char *to, size_t bytes, const unsigned char *tile, size_t period)
{
    for (size_t at = 0; at < bytes; at += period)
        memcpy(to + at, tile, bytes - at < period ? bytes - at : period);
}

size_t tile_differs(const unsigned char *is, size_t bytes, const unsigned char *tile, size_t period)
{
    for (size_t at = 0; at < bytes; at += period) {
        size_t part = bytes - at < period ? bytes - at : period;
        if (memcmp(is + at, tile, part) == 0)
            continue;
        for (size_t i = 0; i < part; i++)
            if (is[at + i] != tile[i])
                return at + i;
    }
    return SIZE_MAX;
}
