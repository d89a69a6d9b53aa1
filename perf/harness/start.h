/* Job: start jobs, and time them until the last rank is through its first barrier; the same program
 *      without tutti is the floor.
 * Owns: a page shared with the job, while it lives.
 * Never: statistics. */
#ifndef PERF_START_H
#define PERF_START_H

#include "harness/series.h"
#include "harness/stamp.h"

#include <stdbool.h>

enum { START_RANKS_MAX = 1024 };

/* What the last rank has right after its first barrier; without tutti, at its main. Resident
 * memory in KiB: its own, and of the arena. */
struct start_has { double descriptors, private_kib, shared_kib, faults; };

void start_spawn(struct series *to, int ranks);
/* By `tutti run -n ranks self`. false: the command cannot be run. has: NULL: not asked. */
bool start_run(struct series *to, int ranks, const char *tutti, const char *self,
               struct start_has *has);
/* The floor: vfork and exec of `self`, until the last one is where it would call tutti_init. */
void start_bare(struct series *to, int ranks, const char *self, struct start_has *has);
/* In main of `self`, first: true if this process was started by one of these and has done its
 * part. */
bool start_child(void);

#endif
