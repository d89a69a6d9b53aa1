/* Job: tell a rank that the kernel killed for want of memory from any other that got SIGKILL.
 * Owns: arena_join.oom_known.
 * Never: asks how a process ended: its status is handed over. */
#ifndef TUTTI_ARENA_CAUSE_H
#define TUTTI_ARENA_CAUSE_H

#include "arena/arena.h"

void cause_begin(const struct arena *arena);         /* by the arena's maker */

/* A wait status, with PROCESS_END_OOM if the kernel has killed somebody that is not accounted for
   yet. */
int  cause_of(const struct arena *arena, int status);

/* By a rank's parent: how it ended, for seat.status. */
void cause_note(const struct arena *arena, uint32_t rank, int status);

#endif
