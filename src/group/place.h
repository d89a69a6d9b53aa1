/* Job: find where in the arena a caller's buffer lies, so peers can read it there.
 * Owns: nothing shared.
 * Never: decides whether that is faster (coll/). */
#ifndef TUTTI_GROUP_PLACE_H
#define TUTTI_GROUP_PLACE_H

#include "group/comm.h"

/* Byte i of a buffer, lo <= i < hi, lies at offset at + i of the arena; other bytes are private. lo
   == hi: all are private. Only at + lo … at + hi is memory of the arena; `at` may be outside. */
struct place { uint64_t at; size_t lo, hi; };

/* With this bit a place is an address in its owner's private memory, not an offset in the arena. */
#define CMA_BIT (UINT64_C(1) << 63)
static inline bool cma_is(uint64_t at) { return at & CMA_BIT; }

/* The arena's second mapping, read-only; made by the first call. NULL: *error. Any thread. */
const char *place_readonly(struct world *world, int *error);

/* Keeps this process's mapping of the arena beyond the end of the world: the kernel may still write
 * to it. */
void place_keep(struct world *world);

/* Memory of tutti_alloc, tutti_view, tutti_view_readonly: all of it. Registered memory: its whole
   pages; of several ranges the longest. Any thread. Cost: some comparisons; with registered memory
   a lock and a binary search, so it is for large buffers. */
struct place comm_place(const struct tutti_comm *comm, const void *ptr, size_t bytes);

#endif
