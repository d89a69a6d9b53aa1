/* Job: open and close the memory that a world hands out to its caller. The functions that use it
 *      are public.
 * Owns: world.heap, world.registered, world.readonly_base.
 * Never: touches staging (group/comm). */
#ifndef TUTTI_API_MEMORY_H
#define TUTTI_API_MEMORY_H

#include "group/comm.h"

/* Needs an open span. 0 or -ENOMEM; then memory_close frees what there is. */
int  memory_open(struct world *world);
/* Makes registered memory private again; allocated memory stays for peers. */
void memory_close(struct world *world);

/* Called first by functions about memory: 0, -EINVAL (no comm), -ECHILD; memory_enter_whole also
 * -ECANCELED on a broken comm. tutti_explain holds the reason. */
int  memory_enter(struct tutti_comm *comm, const char *name);
int  memory_enter_whole(struct tutti_comm *comm, const char *name);

#endif
