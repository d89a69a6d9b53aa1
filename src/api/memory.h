/* Job: the memory that a world hands out to its caller: its beginning and its end. The functions
 *      themselves are public.
 * Owns: world.heap, world.registered, world.readonly_base.
 * Never: staging (group/comm). */
#ifndef TUTTI_API_MEMORY_H
#define TUTTI_API_MEMORY_H

#include "group/comm.h"

/* the span is open. 0 or -ENOMEM; memory_close takes back what there is */
int  memory_open(struct world *world);
/* registered memory becomes private again; what was allocated stays for peers */
void memory_close(struct world *world);

/* For functions about memory: 0, or -EINVAL (no comm), -ECHILD; and -ECANCELED on a broken one.
 * What is said stands in tutti_explain. */
int  memory_enter(struct tutti_comm *comm, const char *name);
int  memory_enter_whole(struct tutti_comm *comm, const char *name);

#endif
