/* Job: the ranks as child processes: end them, hear of their ends, judge who failed first.
 * Owns: seat.status of every rank.
 * Never: output, deadlines. */
#ifndef TUTTI_LAUNCH_CREW_H
#define TUTTI_LAUNCH_CREW_H

#include "arena/arena.h"

#include <stdbool.h>
#include <sys/types.h>

struct hand {
    pid_t pid;
    int status;                      /* as waitpid gives it */
    unsigned turn;                   /* in which look we saw its end; those of one look have no order */
    bool started, ended;
    bool dead_before;                /* its mark said dead before we sent anything */
    bool ours;                       /* it ended after we had told it to */
};

struct crew {
    struct hand *hands;
    int size, living, failed;
    unsigned turns;
    bool told;                       /* we have sent a signal to end */
    const struct arena *arena;
};

int  crew_begin(struct crew *crew, int size, const struct arena *arena);
void crew_end(struct crew *crew);
void crew_add(struct crew *crew, int rank, pid_t pid);
void crew_reap(struct crew *crew);                   /* takes the ends of all children there are by now */
void crew_pass(const struct crew *crew, int number); /* a signal to every living rank */
void crew_expect_end(struct crew *crew);             /* they have been told to end: from now on nobody is blamed for it */
void crew_tell(struct crew *crew, int number);       /* both */

/* The rank that failed first, -1: none that can be blamed. */
int  crew_blame(const struct crew *crew);
void crew_add_blame(const struct crew *crew, int rank, struct text *t);   /* "rank 2 (pid 4711) was killed by ...; 3 other ..." */
int  crew_exit_status(int status);                   /* as a shell counts: 128 + signal */

#endif
