/* The small shared parts are in front, in whole pages. The spans are behind: they are nearly all of
 * the address space and nearly none of the memory. The join page has a fixed place, so the header
 * needs no field for it. Cost: a dozen additions per process. */
#include "arena/offsets.h"

#include "os/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int arena_places(struct arena_places *places, uint32_t size, uint32_t slots, uint64_t store_bytes,
                 uint64_t span_bytes)
{
    if (size < 1 || size > RANKS_MAX || slots < 1 || slots > SLOTS_MAX)
        return -EINVAL;
    if (span_bytes < PLACES_SPAN_UNIT || span_bytes > PLACES_SPAN_MOST
        || span_bytes % PLACES_SPAN_UNIT)
        return -EINVAL;
    if (store_bytes < PLACES_SPAN_UNIT || store_bytes > PLACES_STORE_MOST
        || store_bytes % PLACES_SPAN_UNIT)
        return -EINVAL;
    places->seats_at = PLACES_SEATS;
    places->sites_at = layout_round(places->seats_at + size * sizeof(struct seat), 4096);
    places->keys_at = layout_round(places->sites_at + SITES_MAX * sizeof(struct site), 4096);
    places->slots_at = layout_round(places->keys_at + KEYS_MAX * sizeof(struct key), 4096);
    places->slot_bytes = layout_slot_bytes(size);
    places->store_at = places->slots_at + slots * places->slot_bytes;
    places->spans_at = layout_round(places->store_at + store_bytes, PLACES_SPAN_UNIT);
    places->bytes = places->spans_at + size * span_bytes;
    return 0;
}

void arena_point(struct arena *arena)
{
    arena->header = (struct arena_header *)(void *)arena->base;
    arena->join = (struct arena_join *)(void *)(arena->base + PLACES_JOIN);
    arena->seats = (struct seat *)(void *)(arena->base + arena->header->seats_at);
    arena->sites = (struct site *)(void *)(arena->base + arena->header->sites_at);
    arena->keys = (struct key *)(void *)(arena->base + arena->header->keys_at);
    arena->store = (struct store *)(void *)(arena->base + arena->header->store_at);
}

int arena_own(struct arena *arena, const struct arena_header *checked)
{
    struct arena_header *own = malloc(sizeof *own);
    if (!own)
        return -ENOMEM;
    memcpy((void *)own, (const void *)checked, sizeof *own);
    own->origin.ns += (uint64_t)process_clock_ahead();
    arena->header = own;
    if (!arena->readonly)
        memory_no_roots(arena->fd, arena->base + own->spans_at, arena->bytes - own->spans_at,
                        own->spans_at);
    return 0;
}

void arena_disown(struct arena *arena)
{
    if ((char *)arena->header != arena->base)
        free(arena->header);
    arena->header = NULL;
}

/* Sites are in the dump because the journal needs them. Keys and other slots are not: a dump makes
   every page of them present, megabytes at a moment when memory may be short. */
void arena_dump(const struct arena *arena)
{
    const struct arena_header *h = arena->header;

    memory_dump(arena->base, h->keys_at);
    memory_dump(arena->base + h->slots_at, h->slot_bytes);
}

struct slot *arena_slot(const struct arena *arena, uint32_t index)
{
    if (index >= arena->header->slots)
        return NULL;
    return (struct slot *)(void *)(arena->base + arena->header->slots_at
                                   + index * arena->header->slot_bytes);
}

uint32_t arena_slot_size(const struct arena *arena, const struct slot *slot)
{
    uint32_t size = slot->size;
    return size <= arena->header->size ? size : 0;
}

uint32_t arena_slot_rank(const struct arena *arena, const struct slot *slot, uint32_t p)
{
    if (p >= arena_slot_size(arena, slot))
        return RANK_NOBODY;
    uint32_t rank = slot->world_rank[p];
    return rank < arena->header->size ? rank : RANK_NOBODY;
}

struct member *arena_member(struct slot *slot, uint32_t rank)
{
    /* a larger number is damage; it must not lead out of the arena */
    uint32_t size = slot->size;
    return (struct member *)(void *)((char *)slot
                                     + layout_slot_head(size < RANKS_MAX ? size : RANKS_MAX))
        + rank;
}

char *arena_span(const struct arena *arena, uint32_t world_rank)
{
    if (world_rank >= arena->header->size)
        return NULL;
    return arena->base + arena->header->spans_at + world_rank * arena->header->span_bytes;
}
