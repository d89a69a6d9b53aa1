/* Job: MPI's functions with counts of 64 bits for an MPI that lacks them: by those of ints.
 * Owns: nothing.
 * Never: does a part of a call: what does not fit into ints is refused, by the communicator's error
 *        handler. */
#ifndef TUTTI_MPI_NARROW_H
#define TUTTI_MPI_NARROW_H

#include "mpi/below.h"

/* What BELOW_COUNTS names and the MPI below lacks. */
void narrow_fill(void);

#endif
