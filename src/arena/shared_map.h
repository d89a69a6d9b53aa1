/* Job: map each arena once per process, however many ranks of the process sit in it.
 * Owns: the table of this process's mappings, the one place with process-wide state below the
 *       public floor.
 * Never: reads a mapping's content, but the birth.
 *
 * Why it exists: ranks may be threads. Two mappings of one memfd would double the address space,
 * and ThreadSanitizer knows memory by its address: an edge made in one mapping is invisible in
 * the other. */
#ifndef TUTTI_ARENA_SHARED_MAP_H
#define TUTTI_ARENA_SHARED_MAP_H

#include <stddef.h>
#include <stdint.h>

/* Maps fd whole, or takes one reference more on the mapping of the same memfd. NULL and
 * *error = -errno. */
void *shared_map_take(int fd, uint64_t bytes, int readonly, int *error);

/* Keeps the mapping from later forked children: theirs would outlive the job's last rank. */
void shared_map_not_for_forks(void *base);

/* Gives one reference back; the last one unmaps. */
void shared_map_give(void *base);

#endif
