/* Job: run collectives of any size on device buffers: the pipeline protocol with asynchronous
 *      copies, through the same staging as for host memory.
 * Owns: the mover of struct coll.
 * Never: runs the protocol (coll/pipeline_reduce.c, pipeline_move.c): when what is copied, and what
 *        ranks say of it. */
#ifndef TUTTI_GPU_PINNED_H
#define TUTTI_GPU_PINNED_H

#include "gpu/device.h"

void pinned_choose(struct coll *c);
extern const struct mover pinned_mover;

#endif
