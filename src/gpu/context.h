/* Job: a GPU in this process: its primary context, retained while somebody needs it; calls on it
 *      from any thread; its events.
 * Owns: the process's list of GPUs in use, each with its references.
 * Never: streams, copies, buffers. The calling thread's current context is after a call what it
 *        was before. */
#ifndef TUTTI_GPU_CONTEXT_H
#define TUTTI_GPU_CONTEXT_H

#include "gpu/driver.h"

struct gpu;

/* One reference more on the GPU of this ordinal, begun by the first. 0, or -errno in words: no
 * driver, a forked child, no such device. */
int  gpu_open(int ordinal, struct gpu **gpu, struct text *why);
void gpu_close(struct gpu *gpu);                     /* the last reference lets the context go */
void gpu_hold(struct gpu *gpu);                      /* one more, by who has one */

const struct cuda_api *gpu_api(const struct gpu *gpu);
int gpu_ordinal(const struct gpu *gpu);
CUcontext gpu_context(const struct gpu *gpu);
const struct driver_device *gpu_about(const struct gpu *gpu);
struct kernels *gpu_kernels(struct gpu *gpu);        /* gpu/kernels.h */

/* Around calls: its context is current between the two, in this thread. 0 or -errno; leave
 * only after 0. */
int  gpu_enter(struct gpu *gpu, struct text *why);
void gpu_leave(struct gpu *gpu);
/* The same to give something back, which stays with the device if that fails. */
bool gpu_enter_to_give(struct gpu *gpu);

/* A call of CUDA has failed: adds "device 0 (NAME, bus 0000:0a:00.0): cuX: CUDA_ERROR_… (700): …"
   and returns -ENOMEM where memory is what was missing, else -EIO. */
/* "device 0 (NAME, bus 0000:0a:00.0): " alone */
void gpu_named(const struct gpu *gpu, struct text *why);
int  gpu_failed(const struct gpu *gpu, const char *function, CUresult error, struct text *why);

/* An event without time of this GPU's context, within enter and leave; one that was given back is
 * used again. */
int  gpu_event(struct gpu *gpu, CUevent *event, struct text *why);
void gpu_event_back(struct gpu *gpu, CUevent event);        /* any thread, context or not */
void gpu_event_destroy(struct gpu *gpu, CUevent event);     /* one of another context of this GPU */

#endif
