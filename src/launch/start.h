/* Job: start one rank: clone, vfork or fork, its set-up, exec; take its report if that failed.
 * Owns: the pipe through which children report; the stacks of those that borrow our memory.
 * Never: decides when to start or end ranks. */
#ifndef TUTTI_LAUNCH_START_H
#define TUTTI_LAUNCH_START_H

#include "launch/program.h"
#include "launch/signals.h"

#include <sys/resource.h>
#include <sys/types.h>

enum start_step { START_EXEC, START_BIND, START_DESCRIPTORS, START_FORK };

struct start_failure { int rank, error; enum start_step step; };    /* error: positive errno */

struct start {
    int report[2];                   /* closes by itself when all ranks run */
    int nothing;                     /* /dev/null */
    int arena_fd;
    enum job_bind bind;
    const struct signals *signals;
    struct rlimit descriptors;       /* the limit as we found it */
    bool few;                        /* ranks: nobody waits for an exec */
    struct borrowed *borrowed;       /* what started ranks may still use: a list */
    bool at_terminal;                /* keys of a terminal may reach the ranks as signals */
    pid_t parent;
};

int   start_begin(struct start *s);         /* 0 or -errno */
void  start_all_done(struct start *s);      /* after the last rank: only children can report now */
void  start_end(struct start *s);
/* out, err: descriptors for the rank's stdout and stderr; -1: ours. The pid or -errno. */
pid_t start_rank(struct start *s, struct program *program, int rank, int out, int err);
/* 1: *failure is set. 0: nothing to read now. -1: all ranks run, or ended without a report. Never
 * blocks. */
int   start_failed(struct start *s, struct start_failure *failure);

#endif
