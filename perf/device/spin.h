/* Job: keep a GPU busy for a known time, by a kernel of our own.
 * Owns: its module.
 * Never: a collective; waits. */
#ifndef PERF_DEVICE_SPIN_H
#define PERF_DEVICE_SPIN_H

#include "gpu/cuda_api.h"

struct spin {
    const struct cuda_api *call;
    CUmodule module;
    CUfunction function;
    CUdeviceptr out;
    double steps_per_ms;
    unsigned blocks;
};

/* Loads and times it on this stream, in the current context. */
CUresult spin_open(struct spin *s, const struct cuda_api *call, CUstream stream);
/* The same kernel for a stream beside: kernels of one spin write to one place. */
CUresult spin_beside(struct spin *s, const struct spin *other);
/* Enqueues a kernel that takes about so long, with a block for each multiprocessor. */
CUresult spin_start(struct spin *s, double ms, CUstream stream);
void     spin_close(struct spin *s);

#endif
