/* Job: what the sources of libtutti-mpi have to know of an MPI: the types of its handles, and its
 *      constants. A variant is compiled for one ABI.
 * Owns: nothing; the values of handles are asked once (abi_find) and never change.
 * Never: needs an MPI to be compiled. These are facts of binary interfaces that hold for years. */
#ifndef TUTTI_MPI_ABI_H
#define TUTTI_MPI_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef TUTTI_MPI_OPENMPI
#include "mpi/abi_openmpi.h"
#elif defined TUTTI_MPI_MPI5
#include "mpi/abi_mpi5.h"
#else
#include "mpi/abi_mpich.h"
#endif

/* Like this in every ABI. */
enum { MPI_SUCCESS = 0, MPI_ERR_COUNT = 2, MPI_UNDEFINED = -32766 };
#define MPI_BOTTOM ((void *)0)
typedef intptr_t MPI_Aint;
typedef int64_t MPI_Count;
/* A status is 20 to 32 bytes, of which only the source is read here. */
typedef struct { int words[16]; } MPI_Status;
static inline int abi_source(const MPI_Status *status) { return status->words[STATUS_SOURCE]; }

/* Handles that are needed by name. */
struct abi {
    MPI_Comm world, self, no_comm;
    MPI_Info no_info;
    MPI_Datatype no_type, type_int, type_byte, fortran_integer;
    MPI_Op op_min;
    MPI_Errhandler errors_return;
    MPI_Request no_request;
};

#endif
