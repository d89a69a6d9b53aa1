/* Job: device buffers in the collectives of one phase (inline, eager, same): copies of them in host
 *      memory take part in their place.
 * Owns: the streams' bounce memory while the operation runs.
 * Never: what the algorithm does with the copies; it does not know. */
#ifndef TUTTI_GPU_HOST_COPY_H
#define TUTTI_GPU_HOST_COPY_H

#include "gpu/device.h"

void host_copy_choose(struct coll *c);

#endif
