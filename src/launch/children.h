/* Job: keep the ranks as child processes: signal them, see their ends, find the rank that failed
 *      first.
 * Owns: seat.status of every rank.
 * Never: handles output or deadlines. */
#ifndef TUTTI_LAUNCH_CHILDREN_H
#define TUTTI_LAUNCH_CHILDREN_H

#include "arena/arena.h"

#include <stdbool.h>
#include <sys/types.h>

struct child {
    pid_t pid;
    int status;                 /* as waitpid gives it */
    unsigned turn;              /* number of the look that saw its end; one look has no order */
    bool started, ended;
    bool dead_before;                /* its mark said dead before we sent a signal */
    bool ours;                       /* it ended after we had sent a signal to end */
};

struct children {
    struct child *child;
    int size, living, failed;
    unsigned turns;
    bool told;                       /* we have sent a signal to end */
    const struct arena *arena;
};

int  children_begin(struct children *children, int size, const struct arena *arena);
void children_end(struct children *children);
void children_add(struct children *children, int rank, pid_t pid);
/* Sees the ends of all children that have ended by now. */
void children_reap(struct children *children);
/* Sends a signal to every living rank. */
void children_pass(const struct children *children, int number);
/* A signal to end is about to be sent: from now on no living rank is blamed. */
void children_expect_end(struct children *children);
/* Both; SIGCONT follows, unless the signal is SIGKILL. */
void children_tell(struct children *children, int number);

/* The rank that failed first. -1: none can be blamed. */
int  children_blame(const struct children *children);
/* Adds "rank 2 (pid 4711) was killed by ...; 3 other ...". */
void children_add_blame(const struct children *children, int rank, struct text *t);
/* The exit status of a shell: 128 + signal if there was one. */
int  children_exit_status(int status);

#endif
