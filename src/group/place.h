/* Job: where in the arena a caller's buffer lies, so that peers can read it where it is.
 * Owns: nothing shared.
 * Never: whether that is worth while (coll/). */
#ifndef TUTTI_GROUP_PLACE_H
#define TUTTI_GROUP_PLACE_H

#include "group/comm.h"

/* Byte i of a buffer, lo <= i < hi, lies at offset at + i of the arena; the rest of it is private.
   lo == hi: all of it is. (at may be below what the arena reaches where the head of a buffer is
   private: only at + lo … at + hi is memory.) */
struct place { uint64_t at; size_t lo, hi; };

/* A place with this bit is an address in its owner's private memory, and no offset in the arena. */
#define CMA_BIT (UINT64_C(1) << 63)
static inline bool cma_is(uint64_t at) { return at & CMA_BIT; }

/* Where the arena is mapped a second time, for reading alone; mapped at the first call. NULL:
 * *error. Any thread. */
const char *place_readonly(struct world *world, int *error);

/* This process keeps its mapping of the arena from now on, whenever the world ends: the kernel may
 * still write to it. */
void place_keep(struct world *world);

/* Of tutti_alloc, tutti_view and tutti_view_readonly: all of it; registered: its whole pages, of
   several ranges the longest. Any thread. Some comparisons while nothing is registered, else a lock
   and a binary search: for large buffers. */
struct place comm_place(const struct tutti_comm *comm, const void *ptr, size_t bytes);

#endif
