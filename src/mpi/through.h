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
#include "mpi/shield.h"
#include "mpi/trim.h"

/* Which of MPI's two forms of a function was called: with counts of int, or of MPI_Count. Ranks may
 * call either in one collective. */
enum form { INTS, COUNTS };

/* Of an array of counts or of places, by rank. */
static inline MPI_Count count_of(enum form form, const void *counts, int rank)
{
    return form == COUNTS ? ((const MPI_Count *)counts)[rank] : ((const int *)counts)[rank];
}

/* The call goes to the MPI below in the form it came in, and is counted. */
#define FALL(why, form, of_ints, of_counts) \
    (tally_add(&tally.fell[why]), (form) == COUNTS ? below.of_counts : below.of_ints)

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
    trim_look();
    if (link->spread)
        shield_down();
    return error < 0 ? link_raise(link, function, error) : MPI_SUCCESS;
}

/* This rank lacks something for a call that others wait in: it ends for all. */
int through_lack(struct link *link, const char *function, int error);

int through_init(int *argc, char ***argv);
int through_init_thread(int *argc, char ***argv, int required, int *provided);
int through_finalize(void);

int through_barrier(MPI_Comm);
int through_bcast(void *, MPI_Count, MPI_Datatype, int root, MPI_Comm, enum form);
int through_allgather(const void *, MPI_Count, MPI_Datatype, void *, MPI_Count, MPI_Datatype,
                      MPI_Comm, enum form);
int through_gather(const void *, MPI_Count, MPI_Datatype, void *, MPI_Count, MPI_Datatype, int root,
                   MPI_Comm, enum form);
int through_scatter(const void *, MPI_Count, MPI_Datatype, void *, MPI_Count, MPI_Datatype,
                    int root, MPI_Comm, enum form);
int through_alltoall(const void *, MPI_Count, MPI_Datatype, void *, MPI_Count, MPI_Datatype,
                     MPI_Comm, enum form);

int through_reduce(const void *, void *, MPI_Count, MPI_Datatype, MPI_Op, int root, MPI_Comm,
                   enum form);
int through_allreduce(const void *, void *, MPI_Count, MPI_Datatype, MPI_Op, MPI_Comm, enum form);
int through_reduce_scatter_block(const void *, void *, MPI_Count, MPI_Datatype, MPI_Op, MPI_Comm,
                                 enum form);
int through_scan(const void *, void *, MPI_Count, MPI_Datatype, MPI_Op, MPI_Comm, enum form);
int through_exscan(const void *, void *, MPI_Count, MPI_Datatype, MPI_Op, MPI_Comm, enum form);

/* counts, places: arrays by rank, in this form */
int through_reduce_scatter(const void *, void *, const void *counts, MPI_Datatype, MPI_Op, MPI_Comm,
                           enum form);
int through_allgatherv(const void *, MPI_Count, MPI_Datatype, void *, const void *counts,
                       const void *places, MPI_Datatype, MPI_Comm, enum form);
int through_gatherv(const void *, MPI_Count, MPI_Datatype, void *, const void *counts,
                    const void *places, MPI_Datatype, int root, MPI_Comm, enum form);
int through_scatterv(const void *, const void *counts, const void *places, MPI_Datatype, void *,
                     MPI_Count, MPI_Datatype, int root, MPI_Comm, enum form);
int through_alltoallv(const void *, const void *counts, const void *places, MPI_Datatype, void *,
                      const void *recvcounts, const void *recvplaces, MPI_Datatype, MPI_Comm,
                      enum form);

/* Fills the entries of the collectives in C, in both forms. */
void through_forms(uintptr_t *table);
/* Fills the entries of the names of Fortran, where its library does not call those of C. */
void through_fortran(void *mpi, uintptr_t *table);

#endif
