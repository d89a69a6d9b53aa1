/* Job: where in an arena everything lies: pure arithmetic on its four numbers, and the name
 *      of this build.
 * Owns: nothing.
 * Never: a mapping, a descriptor.
 *
 * Creator and joiner compute the same places from (size, slots, store_bytes, span_bytes). A joiner
 * therefore believes no offset it finds in a header: it computes them anew and compares. */
#ifndef TUTTI_ARENA_OFFSETS_H
#define TUTTI_ARENA_OFFSETS_H

#include "arena/arena.h"

enum { PLACES_HEADER = 0, PLACES_JOIN = 4096, PLACES_SEATS = 8192, PLACES_SLOTS_LEAST = 64 };

/* spans begin and end on huge pages; the store is measured in the same */
#define PLACES_SPAN_UNIT (UINT64_C(2) << 20)
/* its default; halved where there is no address space, down to a unit */
#define PLACES_STORE (UINT64_C(64) << 20)
#define PLACES_STORE_MOST (UINT64_C(1) << 40)
#define PLACES_SPAN_LEAST (UINT64_C(16) << 20)    /* what the default never goes below */
#define PLACES_SPAN_MOST (UINT64_C(1) << 46)      /* keeps every sum below inside 64 bits */

struct arena_places {
    uint64_t seats_at, sites_at, keys_at, slots_at, slot_bytes, store_at, spans_at, bytes;
};

/* 0, or -EINVAL: a number out of its range. */
int arena_places(struct arena_places *places, uint32_t size, uint32_t slots, uint64_t store_bytes,
                 uint64_t span_bytes);

/* Sets the pointers of an arena whose base and bytes are known and whose header has
 * been checked. */
void arena_point(struct arena *arena);
/* From here on the header is read in a private copy of `checked`. 0 or -ENOMEM. */
int  arena_own(struct arena *arena, const struct arena_header *checked);
void arena_disown(struct arena *arena);

/* Puts the pages that explain a crash back into core dumps: header, join, seats, sites and the
 * world's slot. */
void arena_dump(const struct arena *arena);

/* Everything in a header that a reader relies on, looked at in a private copy. bytes: what the
   descriptor really has. -EINVAL not an arena or a damaged one, -EPROTO another build. */
int arena_check(const struct arena_header *copy, uint64_t bytes, struct text *why);

const char *arena_version(void);                  /* of this library, as in header.version */

#endif
