/* Job: count the calls that went through tutti, and those that fell through to the MPI, by reason.
 * Owns: the counts of this process.
 * Never: decides. */
#ifndef TUTTI_MPI_TALLY_H
#define TUTTI_MPI_TALLY_H

#include "base/atomic.h"

/* Why a call fell through. Every reason is one that all ranks of the communicator see alike, but
 * for FELL_ARGUMENT, with which the MPI below ends the call. */
enum fell {
    FELL_NOT,
    FELL_OFF,                          /* before MPI_Init, or the job does without */
    FELL_BETWEEN,                      /* an inter-communicator */
    FELL_ALONE,                        /* one rank */
    FELL_HOSTS,                        /* ranks of other hosts */
    FELL_OTHER_JOB,                    /* spawned or connected processes */
    FELL_ROOM,                         /* no comm could be made */
    FELL_REDUCTION,                    /* type or operation */
    FELL_SLOWER,                       /* tutti is, or it is the MPI's turn to be timed */
    FELL_ARGUMENT,                     /* refused by the MPI */
    FELL_ALL
};

struct tally { shared64 through, fell[FELL_ALL]; };
extern struct tally tally;

static inline void tally_add(shared64 *count)
{
    /* relaxed: a count that several threads raise; exact only where each is alone */
    store_relaxed64(count, load_relaxed64(count) + 1);       /* relaxed: as above */
}

/* One line on stderr, if TUTTI_MPI_STATS asks for it. */
void tally_print(int rank);

#endif
