/* Job: collectives with a root that move a few bytes, as messages: who only gives does not wait for
 *      the others, which MPI allows and tutti's collectives do not.
 * Owns: nothing between two calls.
 * Never: is called for a communicator of several hosts. */
#ifndef TUTTI_MPI_LETTERS_H
#define TUTTI_MPI_LETTERS_H

#include "mpi/elements.h"
#include "mpi/link.h"

/* Up to so many bytes a rank; MPI has all ranks say the same length. Of two ranks there is nobody
 * else to wait for, and a collective costs less than a message. */
enum { LETTERS_MOST = 4096, LETTERS_FROM = 3 };

static inline bool letters_fit(const struct link *link, size_t bytes)
{
    return bytes <= LETTERS_MOST && link->size >= LETTERS_FROM && !link->spread;
}

/* 0 or tutti's error. What came is not what this call wants: the comm is aborted. */
int letters_bcast(struct link *link, const char *function, void *at, size_t bytes, int root);
/* to: at the root alone. It folds in rank order, by the MPI's own arithmetic. */
int letters_reduce(struct link *link, const char *function, const void *from, void *to, size_t n,
                   const struct fold *f, int root);

#endif
