/* Job: handle mappings of cuMemCreate's memory: find those behind an address, make one, end it.
 * Owns: nothing.
 * Never: chooses what is lent or opened (ipc_export.h, ipc_import.h).
 *
 * Of such memory the driver's attributes RANGE_START and RANGE_SIZE describe the reserved
 * addresses. Some of these may have no memory, and others memory of several handles. Of any other
 * memory the attributes describe the buffer. */
#ifndef TUTTI_GPU_SEGMENT_H
#define TUTTI_GPU_SEGMENT_H

#include "gpu/driver.h"

/* Sets base and bytes to those of the mapping around pointer->address. A context is current. 0, or
 * -errno with *why. */
int segment_around(const struct cuda_api *call, struct driver_pointer *pointer, struct text *why);
/* 0: there is memory behind all of these bytes. -EINVAL with *why: not behind all. */
int segment_walk(const struct cuda_api *call, const struct driver_pointer *pointer, size_t bytes,
                 struct text *why);

/* Maps all of `memory` to be read by the device: 0 and *at, or -errno with *why. unmap: what the
 * driver says. */
int segment_map(const struct cuda_api *call, int device, CUmemGenericAllocationHandle memory,
                size_t bytes, CUdeviceptr *at, struct text *why);
CUresult segment_unmap(const struct cuda_api *call, CUdeviceptr at, size_t bytes);

#endif
