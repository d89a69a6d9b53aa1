/* Job: collectives of ranks on several hosts: on each host through the arena, one leader a host
 *      talks to the others by the MPI below. Reductions fold host by host, on a host by rank: the
 *      same bits in each run.
 * Owns: nothing between two calls.
 * Never: looks at a buffer's type; bytes, or predefined elements without gaps. */
#ifndef TUTTI_MPI_ACROSS_H
#define TUTTI_MPI_ACROSS_H

#include "mpi/elements.h"
#include "mpi/leaders.h"

/* What is large goes in pieces of so many bytes. */
enum { ACROSS_PIECE = 1 << 20 };
static inline size_t piece_of(size_t bytes, size_t number)
{
    size_t from = number * ACROSS_PIECE;
    return from >= bytes ? 0 : bytes - from < ACROSS_PIECE ? bytes - from : ACROSS_PIECE;
}

/* 0, or the failure, which all ranks of all hosts learn. link->spread is not NULL. */
int across_barrier(struct link *link, const char *function);
int across_bcast(struct link *link, const char *function, char *at, size_t bytes, int root);
/* of each rank to each: at[], bytes[] by rank */
int across_all_gather(struct link *link, const char *function, const char *from, void *const at[],
                      const size_t bytes[]);
/* root -1: to all */
int across_reduce(struct link *link, const char *function, const char *from, char *to, size_t n,
                  const struct fold *f, int root);
/* counts[] by rank; NULL: `count` each */
int across_reduce_scatter(struct link *link, const char *function, const char *from, char *to,
                          const int counts[], int count, const struct fold *f);

#endif
