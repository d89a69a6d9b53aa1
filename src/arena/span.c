/* The books of a span: an array of pieces, sorted by address, without gaps; neighbours that are free are one piece. First fit from
 * the front, so that pages which were made present once are used again before new ones. Pieces of 2 MiB and more begin on 2 MiB
 * where that costs nothing but addresses, for huge pages. Nothing of this lies in the arena: a peer's bug cannot spoil the books.
 * Cost: linear in the number of pieces, which is a handful, or some thousands of tutti_alloc; populating a page costs far more. */
#include "arena/span.h"

#include "os/memory.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct piece { uint64_t at, bytes; bool used; };     /* at: from the span's first byte */

struct span {
    char *base;
    struct piece *pieces;
    size_t count, room;
};

enum { UNIT = 4096, HUGE_UNIT = 2 << 20, ROOM_FIRST = 16 };

struct span *span_open(char *base, uint64_t bytes)
{
    struct span *span = malloc(sizeof *span);
    struct piece *pieces = malloc(ROOM_FIRST * sizeof *pieces);
    if (!span || !pieces) {
        free(span);
        free(pieces);
        return NULL;
    }
    pieces[0] = (struct piece){ 0, bytes / UNIT * UNIT, false };
    *span = (struct span){ base, pieces, 1, ROOM_FIRST };
    return span;
}

void span_close(struct span *span)
{
    if (!span)
        return;
    free(span->pieces);
    free(span);
}

/* One take splits a piece into at most three. */
static bool room_for_two(struct span *span)
{
    if (span->count + 2 <= span->room)
        return true;
    struct piece *more = realloc(span->pieces, 2 * span->room * sizeof *more);
    if (!more)
        return false;
    span->pieces = more;
    span->room *= 2;
    return true;
}

static void insert(struct span *span, size_t i, struct piece piece)
{
    memmove(&span->pieces[i + 1], &span->pieces[i], (span->count - i) * sizeof piece);
    span->pieces[i] = piece;
    span->count++;
}

static void erase(struct span *span, size_t i)
{
    span->count--;
    memmove(&span->pieces[i], &span->pieces[i + 1], (span->count - i) * sizeof *span->pieces);
}

static uint64_t round_up(uint64_t n, uint64_t to) { return (n + to - 1) / to * to; }

/* How far into the piece an aligned stretch of `bytes` begins; more than the piece has room for: it does not fit. */
static uint64_t skip_in(const struct span *span, const struct piece *piece, uint64_t bytes)
{
    uint64_t at = (uint64_t)(uintptr_t)span->base + piece->at;
    return bytes < HUGE_UNIT ? 0 : round_up(at, HUGE_UNIT) - at;
}

static size_t find(const struct span *span, uint64_t bytes)
{
    for (size_t i = 0; i < span->count; i++) {
        const struct piece *p = &span->pieces[i];
        uint64_t skip = skip_in(span, p, bytes);
        if (!p->used && p->bytes >= bytes && p->bytes - bytes >= skip)
            return i;
    }
    return span->count;
}

static uint64_t carve(struct span *span, size_t i, uint64_t bytes)
{
    uint64_t skip = skip_in(span, &span->pieces[i], bytes);
    if (skip) {
        struct piece front = { span->pieces[i].at, skip, false };
        span->pieces[i].at += skip;
        span->pieces[i].bytes -= skip;
        insert(span, i++, front);
    }
    struct piece *p = &span->pieces[i];
    uint64_t at = p->at;
    if (p->bytes > bytes) {
        struct piece rest = { p->at + bytes, p->bytes - bytes, false };
        p->bytes = bytes;
        insert(span, i + 1, rest);
    }
    span->pieces[i].used = true;
    return at;
}

void *span_take(struct span *span, size_t bytes, int *error)
{
    *error = -ENOSPC;
    if (bytes > (size_t)INT64_MAX)
        return NULL;
    uint64_t whole = round_up(bytes ? bytes : 1, UNIT);
    size_t i = find(span, whole);
    if (i == span->count)
        return NULL;
    *error = -ENOMEM;
    if (!room_for_two(span))
        return NULL;
    char *at = span->base + carve(span, i, whole);
    if (memory_populate(at, whole) < 0) {
        span_give(span, at);
        return NULL;
    }
    *error = 0;
    return at;
}

static size_t piece_at(const struct span *span, uint64_t at)
{
    size_t low = 0, high = span->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (span->pieces[middle].at < at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void span_give(struct span *span, void *at)
{
    uint64_t offset = (uint64_t)((char *)at - span->base);
    size_t i = piece_at(span, offset);
    if (i == span->count || span->pieces[i].at != offset || !span->pieces[i].used)
        return;                                      /* not one of ours: the caller has looked, or gave it back twice */
    span->pieces[i].used = false;
    if (i + 1 < span->count && !span->pieces[i + 1].used) {
        span->pieces[i].bytes += span->pieces[i + 1].bytes;
        erase(span, i + 1);
    }
    if (i > 0 && !span->pieces[i - 1].used) {
        span->pieces[i - 1].bytes += span->pieces[i].bytes;
        erase(span, i);
    }
}
