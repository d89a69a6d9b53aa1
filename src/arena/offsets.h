/* Job: compute the place of each part of an arena from its four numbers; name this build.
 * Owns: nothing.
 * Never: maps memory or opens a descriptor.
 *
 * Creator and joiner compute the same places from (size, slots, store_bytes, span_bytes). A joiner
 * therefore believes no offset it finds in a header: it computes them anew and compares. */
#ifndef TUTTI_ARENA_OFFSETS_H
#define TUTTI_ARENA_OFFSETS_H

#include "arena/arena.h"

enum { PLACES_HEADER = 0, PLACES_JOIN = 4096, PLACES_SEATS = 8192, PLACES_SLOTS_LEAST = 64 };

/* unit of spans and store: a huge page */
#define PLACES_SPAN_UNIT (UINT64_C(2) << 20)
/* the store's default; halved if addresses are short, down to a unit */
#define PLACES_STORE (UINT64_C(64) << 20)
#define PLACES_STORE_MOST (UINT64_C(1) << 40)
#define PLACES_SPAN_LEAST (UINT64_C(16) << 20)    /* least default span */
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
/* Makes arena->header a private copy of `checked`. 0 or -ENOMEM. */
int  arena_own(struct arena *arena, const struct arena_header *checked);
void arena_disown(struct arena *arena);

/* Puts the pages that explain a crash back into core dumps: header, join, seats, sites and the
 * world's slot. */
void arena_dump(const struct arena *arena);

/* Checks all fields of a private copy of a header. bytes: the file's real size. -EINVAL: not an
   arena, or a damaged one. -EPROTO: another build. */
int arena_check(const struct arena_header *copy, uint64_t bytes, struct text *why);

const char *arena_version(void);                  /* of this library, as in header.version */

#endif
