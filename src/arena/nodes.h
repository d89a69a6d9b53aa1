/* Job: choose the NUMA node of each part of an arena.
 * Owns: nothing: the kernel keeps the policies with the memory, for every process that touches it.
 * Never: moves pages that are there; fails: memory on another node is slower, not wrong.
 *
 *   a rank's span                  on its node, also if a peer touches a page first; without a node
 *                                  of its own: where the first toucher runs
 *   sites, keys, slots, store      page by page in turn over the nodes that the ranks may use
 *   a loaded file                  the same
 *   header, join, seats            where the creator runs */
#ifndef TUTTI_ARENA_NODES_H
#define TUTTI_ARENA_NODES_H

#include "arena/arena.h"
#include "os/numa.h"

/* The policy by the table above, for any machine: of the span of a rank with these CPUs and a
   policy of its own (asked); of shared memory, where all ranks together have these CPUs. */
struct numa_policy nodes_of_rank(const struct numa_map *map, const uint64_t *cpus, int words,
                                 const struct numa_policy *asked);
struct numa_policy nodes_of_all(const struct numa_map *map, const uint64_t *cpus, int words);

/* Binds the span of the calling rank, by its CPUs now, before a peer knows of the span. Nothing
 * with one node. */
void nodes_bind_span(const struct arena *arena, uint32_t rank);
/* Binds the shared parts. By the last rank that joins, before any rank goes on. */
void nodes_bind_shared(const struct arena *arena);

/* share: unused whole pages become shared memory by the table; their content is lost. *before: for
 * unshare, which restores the policy. */
void nodes_share(const struct arena *arena, char *at, uint64_t bytes, struct numa_policy *before);
void nodes_unshare(char *at, uint64_t bytes, const struct numa_policy *before);

#endif
