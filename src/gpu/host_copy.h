/* Job: run the collectives of one phase (inline, eager, same) on device buffers, by copies of them
 *      in host memory.
 * Owns: the streams' bounce memory while the operation runs.
 * Never: changes the algorithm, for which a copy is like any buffer. */
#ifndef TUTTI_GPU_HOST_COPY_H
#define TUTTI_GPU_HOST_COPY_H

#include "gpu/device.h"

void host_copy_choose(struct coll *c);

#endif
