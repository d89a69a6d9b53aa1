/* Job: the functions of the MPI below, by their profiling names.
 * Owns: the table, filled once.
 * Never: is linked with any MPI. */
#ifndef TUTTI_MPI_BELOW_H
#define TUTTI_MPI_BELOW_H

#include "mpi/abi.h"

typedef int below_copy(MPI_Comm, int key, void *extra, void *value, void *copy, int *flag);
typedef int below_delete(MPI_Comm, int key, void *value, void *extra);
typedef int below_query(void *extra, MPI_Status *);
typedef int below_free(void *extra);
typedef int below_cancel(void *extra, int complete);

#define BELOW(X) \
    X(Init, (int *, char ***)) \
    X(Init_thread, (int *, char ***, int, int *)) \
    X(Finalize, (void)) \
    X(Query_thread, (int *)) \
    X(Comm_rank, (MPI_Comm, int *)) \
    X(Comm_size, (MPI_Comm, int *)) \
    X(Comm_test_inter, (MPI_Comm, int *)) \
    X(Comm_remote_size, (MPI_Comm, int *)) \
    X(Comm_group, (MPI_Comm, MPI_Group *)) \
    X(Comm_split_type, (MPI_Comm, int, int, MPI_Info, MPI_Comm *)) \
    X(Comm_split, (MPI_Comm, int, int, MPI_Comm *)) \
    X(Comm_dup, (MPI_Comm, MPI_Comm *)) \
    X(Comm_free, (MPI_Comm *)) \
    X(Comm_set_errhandler, (MPI_Comm, MPI_Errhandler)) \
    X(Comm_create_keyval, (below_copy *, below_delete *, int *, void *)) \
    X(Comm_get_attr, (MPI_Comm, int, void *, int *)) \
    X(Comm_set_attr, (MPI_Comm, int, void *)) \
    X(Comm_call_errhandler, (MPI_Comm, int)) \
    X(Group_translate_ranks, (MPI_Group, int, const int *, MPI_Group, int *)) \
    X(Group_free, (MPI_Group *)) \
    X(Type_size, (MPI_Datatype, int *)) \
    X(Type_size_x, (MPI_Datatype, MPI_Count *)) \
    X(Type_get_extent, (MPI_Datatype, MPI_Aint *, MPI_Aint *)) \
    X(Type_create_hindexed, (int, const int *, const MPI_Aint *, MPI_Datatype, MPI_Datatype *)) \
    X(Type_commit, (MPI_Datatype *)) \
    X(Type_free, (MPI_Datatype *)) \
    X(Pack, (const void *, int, MPI_Datatype, void *, int, int *, MPI_Comm)) \
    X(Unpack, (const void *, int, int *, void *, int, MPI_Datatype, MPI_Comm)) \
    X(Sendrecv, (const void *, int, MPI_Datatype, int, int, void *, int, MPI_Datatype, int, int, \
                 MPI_Comm, MPI_Status *)) \
    X(Grequest_start, (below_query *, below_free *, below_cancel *, void *, MPI_Request *)) \
    X(Test, (MPI_Request *, int *, MPI_Status *)) \
    X(Win_test, (MPI_Win, int *)) \
    X(Testall, (int, MPI_Request *, int *, MPI_Status *)) \
    X(Isend, (const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *)) \
    X(Irecv, (void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *)) \
    X(Iprobe, (int, int, MPI_Comm, int *, MPI_Status *)) \
    X(Recv, (void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Status *)) \
    X(Iallgather, (const void *, int, MPI_Datatype, void *, int, MPI_Datatype, MPI_Comm, \
                   MPI_Request *)) \
    X(Ibcast, (void *, int, MPI_Datatype, int, MPI_Comm, MPI_Request *)) \
    X(Reduce_local, (const void *, void *, int, MPI_Datatype, MPI_Op)) \
    X(Barrier, (MPI_Comm)) \
    X(Bcast, (void *, int, MPI_Datatype, int, MPI_Comm)) \
    X(Reduce, (const void *, void *, int, MPI_Datatype, MPI_Op, int, MPI_Comm)) \
    X(Allreduce, (const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm)) \
    X(Reduce_scatter_block, (const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm)) \
    X(Reduce_scatter, (const void *, void *, const int *, MPI_Datatype, MPI_Op, MPI_Comm)) \
    X(Scan, (const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm)) \
    X(Exscan, (const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm)) \
    X(Allgather, (const void *, int, MPI_Datatype, void *, int, MPI_Datatype, MPI_Comm)) \
    X(Gather, (const void *, int, MPI_Datatype, void *, int, MPI_Datatype, int, MPI_Comm)) \
    X(Scatter, (const void *, int, MPI_Datatype, void *, int, MPI_Datatype, int, MPI_Comm)) \
    X(Alltoall, (const void *, int, MPI_Datatype, void *, int, MPI_Datatype, MPI_Comm)) \
    X(Allgatherv, (const void *, int, MPI_Datatype, void *, const int *, const int *, \
                   MPI_Datatype, MPI_Comm)) \
    X(Gatherv, (const void *, int, MPI_Datatype, void *, const int *, const int *, MPI_Datatype, \
                int, MPI_Comm)) \
    X(Scatterv, (const void *, const int *, const int *, MPI_Datatype, void *, int, MPI_Datatype, \
                 int, MPI_Comm)) \
    X(Alltoallv, (const void *, const int *, const int *, MPI_Datatype, void *, const int *, \
                  const int *, MPI_Datatype, MPI_Comm))

/* With counts of 64 bits, since MPI 4. What the MPI below lacks is done by the function of ints, as
 * long as they fit (mpi/narrow). */
#define BELOW_COUNTS(X) \
    X(Bcast_c, (void *, MPI_Count, MPI_Datatype, int, MPI_Comm)) \
    X(Reduce_c, (const void *, void *, MPI_Count, MPI_Datatype, MPI_Op, int, MPI_Comm)) \
    X(Allreduce_c, (const void *, void *, MPI_Count, MPI_Datatype, MPI_Op, MPI_Comm)) \
    X(Reduce_scatter_block_c, (const void *, void *, MPI_Count, MPI_Datatype, MPI_Op, MPI_Comm)) \
    X(Reduce_scatter_c, (const void *, void *, const MPI_Count *, MPI_Datatype, MPI_Op, \
                         MPI_Comm)) \
    X(Scan_c, (const void *, void *, MPI_Count, MPI_Datatype, MPI_Op, MPI_Comm)) \
    X(Exscan_c, (const void *, void *, MPI_Count, MPI_Datatype, MPI_Op, MPI_Comm)) \
    X(Allgather_c, (const void *, MPI_Count, MPI_Datatype, void *, MPI_Count, MPI_Datatype, \
                    MPI_Comm)) \
    X(Gather_c, (const void *, MPI_Count, MPI_Datatype, void *, MPI_Count, MPI_Datatype, int, \
                 MPI_Comm)) \
    X(Scatter_c, (const void *, MPI_Count, MPI_Datatype, void *, MPI_Count, MPI_Datatype, int, \
                  MPI_Comm)) \
    X(Alltoall_c, (const void *, MPI_Count, MPI_Datatype, void *, MPI_Count, MPI_Datatype, \
                   MPI_Comm)) \
    X(Allgatherv_c, (const void *, MPI_Count, MPI_Datatype, void *, const MPI_Count *, \
                     const MPI_Aint *, MPI_Datatype, MPI_Comm)) \
    X(Gatherv_c, (const void *, MPI_Count, MPI_Datatype, void *, const MPI_Count *, \
                  const MPI_Aint *, MPI_Datatype, int, MPI_Comm)) \
    X(Scatterv_c, (const void *, const MPI_Count *, const MPI_Aint *, MPI_Datatype, void *, \
                   MPI_Count, MPI_Datatype, int, MPI_Comm)) \
    X(Alltoallv_c, (const void *, const MPI_Count *, const MPI_Aint *, MPI_Datatype, void *, \
                    const MPI_Count *, const MPI_Aint *, MPI_Datatype, MPI_Comm)) \
    X(Pack_c, (const void *, MPI_Count, MPI_Datatype, void *, MPI_Count, MPI_Count *, MPI_Comm)) \
    X(Unpack_c, (const void *, MPI_Count, MPI_Count *, void *, MPI_Count, MPI_Datatype, \
                 MPI_Comm))

#define BELOW_MEMBER(name, args) int (*name) args;
struct below { BELOW(BELOW_MEMBER) BELOW_COUNTS(BELOW_MEMBER) };
#undef BELOW_MEMBER

extern struct below below;

/* 0, or -1: the library lacks one. */
int below_find(void *mpi);

#endif
