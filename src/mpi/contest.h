/* Job: whether tutti or the MPI is the faster at a function and a size: both are tried by turns in
 *      calls of a communicator, and a few times later, and the faster is kept.
 * Owns: what has been seen so far, in the link.
 * Never: lets two ranks choose differently; changes what is computed: is asked for reductions of
 *        two ranks only, since the MPI may fold more in another order. */
#ifndef TUTTI_MPI_CONTEST_H
#define TUTTI_MPI_CONTEST_H

#include "mpi/tally.h"

#include <stdbool.h>
#include <stddef.h>
#include <tutti.h>

enum contest_of {
    CONTEST_BCAST,
    CONTEST_REDUCE,
    CONTEST_ALLREDUCE,
    CONTEST_ALLGATHER,
    CONTEST_ALLTOALL,
    CONTEST_REDUCE_SCATTER,
    CONTEST_ALL
};
/* From so many bytes on tutti is asked to prove itself between two ranks; one entry for each power
 * of two. */
enum { CONTEST_LEAST = 128, CONTEST_SIZES = 64 };

enum { CONTEST_SHORTEST = 3 };

struct contest_entry {
    /* ns, of tutti and of the MPI. Of two ranks the shortest calls, ascending, 0: not timed yet; of
     * more the sum of all stands in the first place. */
    float took[2][CONTEST_SHORTEST];
    unsigned short before, calls;      /* that nobody tried; of the trial */
    unsigned char leads, clear, over;  /* which of both; by far; it is kept */
};
struct contest {
    size_t least;                      /* bytes; 0: there is no contest */
    bool two;                          /* ranks */
    bool calm;                         /* the first calls of most are tutti's */
    struct contest_entry at[CONTEST_ALL][CONTEST_SIZES];
};

/* A call that is timed. */
struct heat { struct contest_entry *entry; int way; bool two; double began; };

/* FELL_SLOWER: this call is the MPI's, and all ranks are in it. comm: of the same ranks; bytes:
 * what all of them count alike; root: 0 where there is none. */
enum fell contest_slow(struct heat *heat, struct contest *contest, tutti_comm *comm,
                       enum contest_of of, size_t bytes, int root);
void contest_timed(const struct heat *heat);

/* In a call's beginning. */
static inline enum fell contest_begin(struct heat *heat, struct contest *contest, tutti_comm *comm,
                                      enum contest_of of, size_t bytes, int root)
{
    heat->entry = NULL;
    return !contest->least || bytes < contest->least
        ? FELL_NOT
        : contest_slow(heat, contest, comm, of, bytes, root);
}

/* In its end; returns result. */
static inline int contest_end(const struct heat *heat, int result)
{
    if (heat->entry)
        contest_timed(heat);
    return result;
}

#endif
