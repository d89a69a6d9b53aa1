/* Job: one collective of a rank, from its buffers to the judgement over them.
 * Owns: its buffers, and the handle while it is under way.
 * Never: which step comes next. */
#ifndef TUTTI_TEST_SOAK_JOB_H
#define TUTTI_TEST_SOAK_JOB_H

#include "support/pieces.h"
#include "soak.h"

struct player {
    tutti_comm *world;
    struct program program;
    struct soak_board *board;
    uint64_t own;
    int me;
};

struct job {
    struct player *player;
    struct step step;
    struct group *group;
    size_t nth;                                      /* of the program's steps */
    struct pieces send, recv;
    unsigned char *give[SOAK_BLOCKS], *get[SOAK_BLOCKS];
    size_t gives[SOAK_BLOCKS], gets[SOAK_BLOCKS];    /* elements */
    int give_n, get_n;
    bool in_place, called;                           /* called: done has been asked for */
    tutti_work *work;
    shared32 done, done_result;
};

/* Makes the buffers, calls or starts it. A job that is under way is returned in *left, which
 * job_end takes. 0, or 1: said. */
int job_play(struct player *player, const struct step *step, struct job **left);
int job_end(struct job *job);
__attribute__((format(printf, 4, 5))) int player_complain(struct player *player,
                                                          const struct step *step, tutti_comm *comm,
                                                          const char *format, ...);

#endif
