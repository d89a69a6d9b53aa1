/* Job: where no launcher does it, let one survivor of a failed job write its black box when it
 *      leaves.
 * Owns: in the arena `join.boxed`, as the one that got it.
 * Never: makes a call that fails wait: it comes when this rank leaves, and only where TUTTI_BOX is
 *        set. */
#ifndef TUTTI_API_SURVIVOR_H
#define TUTTI_API_SURVIVOR_H

#include "group/comm.h"

/* This rank is about to leave. */
void survivor_leaves(struct world *world);

#endif
