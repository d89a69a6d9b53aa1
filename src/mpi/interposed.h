/* Job: the list of MPI's functions that libtutti-mpi.so stands in front of.
 * Owns: nothing.
 * Never: knows what they do. All exist in every MPI since 2.2, so nothing is exported that the MPI
 *        below lacks; arguments are integers and pointers only. */
#ifndef TUTTI_MPI_INTERPOSED_H
#define TUTTI_MPI_INTERPOSED_H

#include <stdint.h>

/* Name, number of arguments. */
#define INTERPOSED(X) \
    X(Init, 2) X(Init_thread, 4) X(Finalize, 0) \
    X(Barrier, 1) X(Bcast, 5) X(Reduce, 7) X(Allreduce, 6) X(Reduce_scatter_block, 6) \
    X(Reduce_scatter, 6) X(Scan, 6) X(Exscan, 6) \
    X(Allgather, 7) X(Gather, 8) X(Scatter, 8) X(Alltoall, 7) \
    X(Allgatherv, 8) X(Gatherv, 9) X(Scatterv, 9) X(Alltoallv, 9)

/* The same from Fortran, which has one argument more: the error. Open MPI's Fortran library calls
 * the MPI below directly, so its names are stood in front of, too. */
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
    INTERPOSED_FORTRAN(INTERPOSED_FORTRAN_NUMBER)
    INTERPOSED_ALL,
    INTERPOSED_C = AT_FORTRAN_INIT
};

/* What a variant shows: puts its functions into table, leaves the others. mpi: the library below,
 * of dlopen. 0, or negative: nothing is to be changed; *why says the reason. */
typedef int tutti_mpi_opener(void *mpi, uintptr_t table[INTERPOSED_ALL], const char **why);

#endif
