/* Calls as a program makes them that was built with TUTTI_NO_SITES. */
#define TUTTI_NO_SITES
#include "no_sites.h"

int no_sites_barrier(tutti_comm *comm, const tutti_call *call) { return tutti_barrier(comm, call); }
