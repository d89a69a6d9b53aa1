/* Job: a collective called without its place.
 * Owns: nothing.
 * Never: the macros of tutti.h. */
#ifndef TUTTI_TEST_API_NO_SITES_H
#define TUTTI_TEST_API_NO_SITES_H

#include <tutti.h>

int no_sites_barrier(tutti_comm *comm, const tutti_call *call);

#endif
