/* Job: retain a GPU's primary context in this process while it is needed; make it current for calls
 *      of any thread; keep its events.
 * Owns: the process's list of GPUs in use, each with its number of references.
 * Never: handles streams, copies or buffers; leaves another context current in the calling
 *        thread. */
#ifndef TUTTI_GPU_CONTEXT_H
#define TUTTI_GPU_CONTEXT_H

#include "gpu/driver.h"

struct gpu;

/* Adds a reference to the GPU of this ordinal; the first one begins it and loads our kernels. 0, or
 * -errno with *why: no driver, a forked child, no such device. */
int  gpu_open(int ordinal, struct gpu **gpu, struct text *why);
void gpu_close(struct gpu *gpu);                     /* the last one releases the context */
void gpu_hold(struct gpu *gpu);                      /* adds one; the caller has one already */

const struct cuda_api *gpu_api(const struct gpu *gpu);
int gpu_ordinal(const struct gpu *gpu);
CUcontext gpu_context(const struct gpu *gpu);
const struct driver_device *gpu_about(const struct gpu *gpu);
struct kernels *gpu_kernels(struct gpu *gpu);        /* gpu/kernels.h */

/* Between the two the GPU's context is current in this thread. 0 or -errno. Leave only after 0. */
int  gpu_enter(struct gpu *gpu, struct text *why);
void gpu_leave(struct gpu *gpu);
/* The same, to give something back. False: that stays with the device. */
bool gpu_enter_to_give(struct gpu *gpu);

/* Adds "device 0 (NAME, bus 0000:0a:00.0): " to *why. */
void gpu_named(const struct gpu *gpu, struct text *why);
/* A call of CUDA has failed: adds the same and "cuX: CUDA_ERROR_… (700): …" to *why (may be
 * NULL). -ENOMEM if memory was missing, else -EIO. */
int  gpu_failed(const struct gpu *gpu, const char *function, CUresult error, struct text *why);

/* Pages of host memory that are not there yet come from the GPU's NUMA node, where a machine has
 * several: what crosses from one socket to the other on its way to a GPU is slower. */
void gpu_near(const struct gpu *gpu, void *at, size_t bytes);

/* An event without timing, of this GPU's context, between enter and leave. Events that were given
 * back are used again. */
int  gpu_event(struct gpu *gpu, CUevent *event, struct text *why);
void gpu_event_back(struct gpu *gpu, CUevent event);        /* any thread, in any context */
void gpu_event_destroy(struct gpu *gpu, CUevent event);     /* one of another context of this GPU */

#endif
