/* Job: the ranks as child processes: end them, hear of their ends, judge who failed first.
 * Owns: seat.status of every rank.
 * Never: output, deadlines. */
#ifndef TUTTI_LAUNCH_CHILDREN_H
#define TUTTI_LAUNCH_CHILDREN_H

#include "arena/arena.h"

#include <stdbool.h>
#include <sys/types.h>

struct child {
    pid_t pid;
    int status;                 /* as waitpid gives it */
    unsigned turn;              /* in which look we saw its end; those of one look have no order */
    bool started, ended;
    bool dead_before;                /* its mark said dead before we sent anything */
    bool ours;                       /* it ended after we had told it to */
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
/* Takes the ends of all children there are by now. */
void children_reap(struct children *children);
/* A signal to every living rank. */
void children_pass(const struct children *children, int number);
/* They have been told to end: from now on nobody is blamed for it. */
void children_expect_end(struct children *children);
/* Both. */
void children_tell(struct children *children, int number);

/* The rank that failed first, -1: none that can be blamed. */
int  children_blame(const struct children *children);
/* "rank 2 (pid 4711) was killed by ...; 3 other ..." */
void children_add_blame(const struct children *children, int rank, struct text *t);
/* As a shell counts: 128 + signal. */
int  children_exit_status(int status);

#endif
