/* A variant: these sources, compiled for one ABI of MPI. The trampoline opens it and asks for its
 * functions; begin and end of the job hang on the MPI's own. */
#include "mpi/interposed.h"
#include "mpi/through.h"

#define SHOWN __attribute__((visibility("default")))
SHOWN tutti_mpi_opener tutti_mpi_open;

static void *library;

/* Sizes of types may be asked only now. */
static int begin(int r)
{
    int integer = 0;
    if (r != MPI_SUCCESS)
        return r;
    elements_find(library);
    below.Type_size(job.abi.fortran_integer, &integer);
    job_begin(integer == 0 || integer == sizeof(int), link_copied, link_deleted);
    return r;
}

int through_init(int *argc, char ***argv)
{
    return begin(below.Init(argc, argv));
}

int through_init_thread(int *argc, char ***argv, int required, int *provided)
{
    return begin(below.Init_thread(argc, argv, required, provided));
}

/* Handlers of the program's own attributes run in the MPI's finalize, and may call collectives:
 * tutti goes after it. */
int through_finalize(void)
{
    job.ended = true;
    int r = below.Finalize();
    if (r == MPI_SUCCESS) {
        link_end();
        job_end();
        tally_print(job.rank);
    }
    return r;
}

int tutti_mpi_open(void *mpi, uintptr_t table[INTERPOSED_ALL], const char **why)
{
    *why = "it lacks a function or a constant that was expected";
    if (below_find(mpi) < 0 || abi_find(&job.abi, mpi) < 0)
        return -1;
    library = mpi;
    table[AT_Init] = (uintptr_t)through_init;
    table[AT_Init_thread] = (uintptr_t)through_init_thread;
    table[AT_Finalize] = (uintptr_t)through_finalize;
    table[AT_Barrier] = (uintptr_t)through_barrier;
    table[AT_Bcast] = (uintptr_t)through_bcast;
    table[AT_Reduce] = (uintptr_t)through_reduce;
    table[AT_Allreduce] = (uintptr_t)through_allreduce;
    table[AT_Reduce_scatter_block] = (uintptr_t)through_reduce_scatter_block;
    table[AT_Reduce_scatter] = (uintptr_t)through_reduce_scatter;
    table[AT_Scan] = (uintptr_t)through_scan;
    table[AT_Exscan] = (uintptr_t)through_exscan;
    table[AT_Allgather] = (uintptr_t)through_allgather;
    table[AT_Gather] = (uintptr_t)through_gather;
    table[AT_Scatter] = (uintptr_t)through_scatter;
    table[AT_Alltoall] = (uintptr_t)through_alltoall;
    table[AT_Allgatherv] = (uintptr_t)through_allgatherv;
    table[AT_Gatherv] = (uintptr_t)through_gatherv;
    table[AT_Scatterv] = (uintptr_t)through_scatterv;
    table[AT_Alltoallv] = (uintptr_t)through_alltoallv;
    through_fortran(mpi, table);
    return 0;
}
