/* The mode is CUDA's, of each thread, and may be the program's choice. So it is put back. */
#include "gpu/calm.h"

/* was: the mode before the outermost calm_begin. */
static _Thread_local struct { int depth, was; } calm;

CUresult calm_begin(const struct cuda_api *call)
{
    int mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    if (calm.depth) {
        calm.depth++;
        return CUDA_SUCCESS;
    }
    CUresult error = call->cuThreadExchangeStreamCaptureMode(&mode);
    calm.depth = !error;
    calm.was = mode;
    return error;
}

void calm_end(const struct cuda_api *call)
{
    int mode = calm.was;
    if (--calm.depth == 0 && mode != CU_STREAM_CAPTURE_MODE_RELAXED)
        call->cuThreadExchangeStreamCaptureMode(&mode);
}

CUresult calm_enter(const struct cuda_api *call, CUcontext context, const char **function)
{
    *function = "cuThreadExchangeStreamCaptureMode";
    CUresult error = calm_begin(call);
    if (error)
        return error;
    *function = "cuCtxPushCurrent";
    error = call->cuCtxPushCurrent_v2(context);
    if (error)
        calm_end(call);
    return error;
}

void calm_leave(const struct cuda_api *call)
{
    CUcontext was;
    call->cuCtxPopCurrent_v2(&was);
    calm_end(call);
}

/* A context that has died is given no work; this question says so, and nothing else does without
 * waiting. The numbers of a stream that is captured say nothing of the context. */
CUresult calm_died(const struct cuda_api *call)
{
    int capturing;
    CUresult error = call->cuStreamIsCapturing(NULL, &capturing);
    return error < CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED || error == CUDA_ERROR_UNKNOWN
        ? error
        : CUDA_SUCCESS;
}

bool calm_enter_to_give(const struct cuda_api *call, CUcontext context)
{
    const char *function;
    return !calm_enter(call, context, &function) || !calm_enter(call, context, &function);
}
