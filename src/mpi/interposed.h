/* Job: the list of MPI's functions that libtutti-mpi.so stands in front of.
 * Owns: nothing.
 * Never: knows what they do. Arguments are integers and pointers only. */
#ifndef TUTTI_MPI_INTERPOSED_H
#define TUTTI_MPI_INTERPOSED_H

#include <stdint.h>

/* Name, number of arguments. All are in every MPI since 2.2. */
#define INTERPOSED(X) \
    X(Init, 2) X(Init_thread, 4) X(Finalize, 0) \
    X(Barrier, 1) X(Bcast, 5) X(Reduce, 7) X(Allreduce, 6) X(Reduce_scatter_block, 6) \
    X(Reduce_scatter, 6) X(Scan, 6) X(Exscan, 6) \
    X(Allgather, 7) X(Gather, 8) X(Scatter, 8) X(Alltoall, 7) \
    X(Allgatherv, 8) X(Gatherv, 9) X(Scatterv, 9) X(Alltoallv, 9) \
    X(Win_test, 2)

/* The same with counts of 64 bits, since MPI 4. They are shown also where the MPI below lacks them:
 * a variant does them there by those above. */
#define INTERPOSED_COUNTS(X) \
    X(Bcast_c, 5) X(Reduce_c, 7) X(Allreduce_c, 6) X(Reduce_scatter_block_c, 6) \
    X(Reduce_scatter_c, 6) X(Scan_c, 6) X(Exscan_c, 6) \
    X(Allgather_c, 7) X(Gather_c, 8) X(Scatter_c, 8) X(Alltoall_c, 7) \
    X(Allgatherv_c, 8) X(Gatherv_c, 9) X(Scatterv_c, 9) X(Alltoallv_c, 9)

/* The first of them from Fortran, which has one argument more: the error. Open MPI's Fortran
 * library calls the MPI below directly, so its names are stood in front of, too. */
#define INTERPOSED_FORTRAN(X) \
    X(init, INIT, 1) X(init_thread, INIT_THREAD, 3) X(finalize, FINALIZE, 1) \
    X(barrier, BARRIER, 2) X(bcast, BCAST, 6) X(reduce, REDUCE, 8) X(allreduce, ALLREDUCE, 7) \
    X(reduce_scatter_block, REDUCE_SCATTER_BLOCK, 7) X(reduce_scatter, REDUCE_SCATTER, 7) \
    X(scan, SCAN, 7) X(exscan, EXSCAN, 7) \
    X(allgather, ALLGATHER, 8) X(gather, GATHER, 9) X(scatter, SCATTER, 9) \
    X(alltoall, ALLTOALL, 8) X(allgatherv, ALLGATHERV, 9) X(gatherv, GATHERV, 10) \
    X(scatterv, SCATTERV, 10) X(alltoallv, ALLTOALLV, 10)

#define INTERPOSED_NUMBER(name, n) AT_##name,
#define INTERPOSED_FORTRAN_NUMBER(name, NAME, n) AT_FORTRAN_##NAME,
enum interposed {
    INTERPOSED(INTERPOSED_NUMBER)
    INTERPOSED_COUNTS(INTERPOSED_NUMBER)
    AT_END,                            /* by which Open MPI ends the process */
    AT_UNSENT,                         /* of a variant alone: unsent.h */
    INTERPOSED_FORTRAN(INTERPOSED_FORTRAN_NUMBER)
    INTERPOSED_ALL,
    INTERPOSED_C = AT_FORTRAN_INIT
};

/* What a variant shows: puts its functions into table, leaves the others. mpi: the library below,
 * of dlopen. 0, or negative: nothing is to be changed; *why says the reason. */
typedef int tutti_mpi_opener(void *mpi, uintptr_t table[INTERPOSED_ALL], const char **why);

#endif
