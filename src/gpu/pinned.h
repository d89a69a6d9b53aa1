/* Job: device buffers in the collectives of any size: the pipeline protocol with asynchronous
 *      copies, through the same staging as the host's.
 * Owns: the mover of struct coll.
 * Never: the protocol (coll/pipeline_reduce.c, pipeline_move.c): when what is copied, and what is
 *        said of it. */
#ifndef TUTTI_GPU_PINNED_H
#define TUTTI_GPU_PINNED_H

#include "gpu/device.h"

void pinned_choose(struct coll *c);
extern const struct mover pinned_mover;

#endif
