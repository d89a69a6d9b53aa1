/* Job: a message that MPICH cannot send does not end this process.
 * Owns: ucp_tag_send_nbx of this process, in front of UCX's.
 * Never: changes what a call of the program's own gets. */
#ifndef TUTTI_MPI_UNSENT_H
#define TUTTI_MPI_UNSENT_H

#include <stdbool.h>
#include <stdint.h>

/* fn: a variant's shield_unsent; 0: none. */
void unsent_told(uintptr_t fn);

#endif
