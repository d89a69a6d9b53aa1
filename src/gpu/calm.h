/* Job: keep this thread's calls of CUDA from disturbing the graphs that the program captures; make
 *      a context current for them.
 * Owns: the thread's capture mode, and the context on top of its stack, until the end of each pair.
 * Never: chooses a context; asks a device what it would wait for.
 *
 * While a thread captures a graph in CUDA's global mode, a call of any thread that asks how far a
 * device is ends that capture, and fails. PyTorch captures so. A thread whose own mode is relaxed
 * neither harms nor fails. The exchange costs some 20 ns. */
#ifndef TUTTI_GPU_CALM_H
#define TUTTI_GPU_CALM_H

#include "gpu/cuda_api.h"

#include <stdbool.h>

/* Pairs may be nested; the outermost one exchanges. 0; else what CUDA said, and there is no end. */
CUresult calm_begin(const struct cuda_api *call);
void calm_end(void);

/* Between the two the context is current as well. Not 0: *function said that. */
CUresult calm_enter(const struct cuda_api *call, CUcontext context, const char **function);
void calm_leave(const struct cuda_api *call);
/* The same, to give something back to it, which stays there if that fails. So a call that fails is
   made once more. A broken context takes back, too: what is open in it must be closed before its
   owner may free it. */
bool calm_enter_to_give(const struct cuda_api *call, CUcontext context);

/* Around several pairs, which then cost the driver one exchange, and one push of the context that
 * comes first: from the first pair that needs it to the outermost release. */
void calm_hold(void);
void calm_release(void);

/* Within a pair that has a context: what that has died of; 0: it lives. An error of another call
 * does not say it, since drivers differ in which numbers are for good. */
CUresult calm_died(const struct cuda_api *call);

#endif
