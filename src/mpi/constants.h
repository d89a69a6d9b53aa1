/* Job: find the constants of the MPI below that are handles.
 * Owns: nothing; a constant has one value as long as the library is loaded.
 * Never: calls the MPI before its init, but for dlsym. */
#ifndef TUTTI_MPI_CONSTANTS_H
#define TUTTI_MPI_CONSTANTS_H

#include "mpi/below.h"

#include <stdbool.h>

/* What reductions may do with a type. Moved only: all else, pairs and characters among them. */
enum element_class { MOVED, SIGNED, UNSIGNED, REAL, COMPLEX, LOGICAL, BYTES };

struct named_type {
    const char *symbol;                /* of Open MPI */
    uint32_t number;                   /* of MPICH; 0: it has none that is always valid */
    enum element_class kind;
};

/* Of the library that was opened as mpi. 0, or -1: it lacks one. */
int abi_find(struct abi *abi, void *mpi);
/* A predefined type, and its size, 0 if it has gaps; an operation by tutti's number. False: this
 * MPI has none. */
bool abi_type(void *mpi, const struct named_type *name, MPI_Datatype *type, size_t *size);
bool abi_op(void *mpi, int op, MPI_Op *found);
/* The addresses that Fortran passes for MPI_IN_PLACE and MPI_BOTTOM; NULL: not known here. */
struct abi_fortran { const void *in_place[4], *bottom[4]; };
void abi_fortran(void *mpi, struct abi_fortran *f);

#endif
