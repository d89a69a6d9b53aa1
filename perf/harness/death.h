/* Job: start jobs, kill a rank of them, and time how soon the others know.
 * Owns: a page shared with the job, while it lives.
 * Never: statistics. */
#ifndef PERF_DEATH_H
#define PERF_DEATH_H

#include "harness/series.h"
#include "harness/stamp.h"

#include <stdbool.h>

/* One job whose last rank is killed from outside; adds the time of each survivor, ns. asleep: the
   victim computes while the others have been waiting for it for 30 ms; else all run barriers and it
   strikes at any moment. exits: until the kernel says by a pidfd that it is dead, which is the
   floor. Ends the program if a survivor got another error. */
void death_strike(struct series *to, struct series *exits, int ranks, bool asleep, unsigned seed);

#endif
