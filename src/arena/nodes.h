/* Job: on which NUMA node each part of an arena lies.
 * Owns: nothing: the policies are the kernel's, kept with the memory itself, and hold for every
 *       process that touches it.
 * Never: moves pages that are there; fails: memory that lies elsewhere is slower, not wrong.
 *
 *   a rank's span                  on its node, whoever touches a page first; without a node of its
 *                                  own: where the toucher runs
 *   sites, keys, slots, store      page by page in turn over the nodes that the ranks may use
 *   a loaded file                  the same
 *   header, join, seats            where the creator runs */
#ifndef TUTTI_ARENA_NODES_H
#define TUTTI_ARENA_NODES_H

#include "arena/arena.h"
#include "os/numa.h"

/* What the table says, for any machine: of a rank that may run on these CPUs and has asked for that
   policy itself; of memory that is everybody's, where all ranks together may run on these. */
struct numa_policy nodes_of_rank(const struct numa_map *map, const uint64_t *cpus, int words,
                                 const struct numa_policy *asked);
struct numa_policy nodes_of_all(const struct numa_map *map, const uint64_t *cpus, int words);

/* By the rank itself, as it is bound now, before others can know of its span. Nothing where there
 * is one node. */
void nodes_bind_span(const struct arena *arena, uint32_t rank);
/* By the last rank that joins, when all seats are filled and before anybody goes on. */
void nodes_bind_shared(const struct arena *arena);

/* A stretch of whole pages that nobody uses becomes everybody's: what it holds is given up. And
 * back, as it was. */
void nodes_share(const struct arena *arena, char *at, uint64_t bytes, struct numa_policy *before);
void nodes_unshare(char *at, uint64_t bytes, const struct numa_policy *before);

#endif
