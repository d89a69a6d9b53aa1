/* Job: which of MPI's predefined types and operations are which of tutti's.
 * Owns: the tables, filled once before the first use.
 * Never: looks at a type that a program has made. */
#ifndef TUTTI_MPI_ELEMENTS_H
#define TUTTI_MPI_ELEMENTS_H

#include "mpi/constants.h"

#include <tutti.h>

struct element {
    MPI_Datatype type;
    size_t size;                       /* bytes, without a gap */
    enum element_class kind;
    int tutti;                         /* tutti_type; -1: moved only */
};

/* A type and an operation, for the MPI and for tutti. */
struct fold { MPI_Datatype type; MPI_Op op; const struct element *element; int tutti_op; };

void elements_find(void *mpi);
/* NULL: it is none of the predefined types, or has gaps. */
const struct element *element_of(MPI_Datatype type);
/* tutti_op. -1: MPI does not define the operation for this type, or tutti has none like it. */
int  element_op(const struct element *element, MPI_Op op);

#endif
