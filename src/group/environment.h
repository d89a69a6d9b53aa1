/* Job: read what a launcher put into the environment: rank, size, how many are local,
 *      the job's name.
 * Owns: nothing.
 * Never: the arena. All of a launcher's variables that are there are used together. */
#ifndef TUTTI_GROUP_ENVIRONMENT_H
#define TUTTI_GROUP_ENVIRONMENT_H

#include "base/text.h"

struct launcher_ways;           /* launcher.h */

struct launch_place {
    /* "tutti run", "torchrun", "Open MPI", "MPICH", "Slurm", "options", "alone" */
    const char *launcher;
    int  rank, size;            /* of the world to join */
    int  local_size;            /* ranks on this host as the launcher says; 0: it does not */
    int  global_rank, global_size;
    /* what the meeting name is made of, without uid and count; by environment_set_job alone */
    char job[128];
};

/* lookup: getenv; in tests a table. 0; without a launcher that is "alone", size 1. -EINVAL with a
   sentence: a variable is wrong, or one of a pair is missing. -EXDEV: not all ranks of the world
   are local, and local_only is 0. */
int environment_read(struct launch_place *place, const char *(*lookup)(const char *name, void *arg),
                     void *arg, int local_only, struct text *why);

/* environment_read with all its sources as arguments. */
int environment_read_from(struct launch_place *place, const struct launcher_ways *ways,
                          int local_only, struct text *why);

/* Sets the name under which the ranks meet. Any length: names that differ stay different. */
void environment_set_job(struct launch_place *place, const char *name);

#endif
