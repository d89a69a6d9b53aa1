/* Job: MPI's collectives as tutti's. Each has MPI's arguments, and decides by communicator and
 *      function alone, in reductions by type and operation, whether it goes through tutti.
 * Owns: nothing between two calls.
 * Never: waits outside tutti and the MPI. */
#ifndef TUTTI_MPI_THROUGH_H
#define TUTTI_MPI_THROUGH_H

#include "mpi/across.h"
#include "mpi/elements.h"
#include "mpi/link.h"
#include "mpi/pack.h"

/* The call goes to the MPI below, and is counted. */
#define FALL(why, call) (tally_add(&tally.fell[why]), below.call)

/* Why a call on this communicator falls through; FELL_NOT: it does not. */
static inline enum fell through_fell(const struct link *link)
{
    return link ? link->fell : FELL_OFF;
}

/* The same of a function that also goes through where ranks are on several hosts. */
static inline enum fell through_fell_far(const struct link *link)
{
    return link && link->spread ? FELL_NOT : through_fell(link);
}

/* A call has ended: counted; an error is the communicator's error handler's. */
static inline int through_end(struct link *link, const char *function, int error)
{
    tally_add(&tally.through);
    return error < 0 ? link_raise(link, function, error) : MPI_SUCCESS;
}

/* This rank lacks something for a call that others wait in: it ends for all. */
int through_lack(struct link *link, const char *function, int error);

int through_init(int *argc, char ***argv);
int through_init_thread(int *argc, char ***argv, int required, int *provided);
int through_finalize(void);

int through_barrier(MPI_Comm);
int through_bcast(void *, int, MPI_Datatype, int root, MPI_Comm);
int through_allgather(const void *, int, MPI_Datatype, void *, int, MPI_Datatype, MPI_Comm);
int through_gather(const void *, int, MPI_Datatype, void *, int, MPI_Datatype, int root, MPI_Comm);
int through_scatter(const void *, int, MPI_Datatype, void *, int, MPI_Datatype, int root,
                    MPI_Comm);
int through_alltoall(const void *, int, MPI_Datatype, void *, int, MPI_Datatype, MPI_Comm);

int through_reduce(const void *, void *, int, MPI_Datatype, MPI_Op, int root, MPI_Comm);
int through_allreduce(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm);
int through_reduce_scatter_block(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm);
int through_reduce_scatter(const void *, void *, const int[], MPI_Datatype, MPI_Op, MPI_Comm);
int through_scan(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm);
int through_exscan(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm);

int through_allgatherv(const void *, int, MPI_Datatype, void *, const int[], const int[],
                       MPI_Datatype, MPI_Comm);
int through_gatherv(const void *, int, MPI_Datatype, void *, const int[], const int[],
                    MPI_Datatype, int root, MPI_Comm);
int through_scatterv(const void *, const int[], const int[], MPI_Datatype, void *, int,
                     MPI_Datatype, int root, MPI_Comm);
int through_alltoallv(const void *, const int[], const int[], MPI_Datatype, void *, const int[],
                      const int[], MPI_Datatype, MPI_Comm);

/* Fills the entries of the names of Fortran, where its library does not call those of C. */
void through_fortran(void *mpi, uintptr_t *table);

#endif
