/* The mode is CUDA's, of each thread, and may be the program's choice. So it is put back. */
#include "gpu/calm.h"

/* relaxed: the thread's mode is ours; was: the one before. depth: calm_begin without calm_end.
 * held: calm_hold without calm_release. kept: the context that was the first to be entered since;
 * it stays current. pushed: contexts entered on top of it, or without a hold. */
static _Thread_local struct {
    const struct cuda_api *call;
    bool relaxed;
    int was, depth, held, pushed;
    CUcontext kept;
} calm;

static void put_back(void)
{
    int mode = calm.was;
    calm.relaxed = false;
    if (mode != CU_STREAM_CAPTURE_MODE_RELAXED)
        calm.call->cuThreadExchangeStreamCaptureMode(&mode);
}

CUresult calm_begin(const struct cuda_api *call)
{
    int mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    if (!calm.relaxed) {
        CUresult error = call->cuThreadExchangeStreamCaptureMode(&mode);
        if (error)
            return error;
        calm.call = call;
        calm.relaxed = true;
        calm.was = mode;
    }
    calm.depth++;
    return CUDA_SUCCESS;
}

void calm_end(void)
{
    if (--calm.depth == 0 && !calm.held)
        put_back();
}

CUresult calm_enter(const struct cuda_api *call, CUcontext context, const char **function)
{
    *function = "cuThreadExchangeStreamCaptureMode";
    CUresult error = calm_begin(call);
    if (error || (calm.held && !calm.pushed && calm.kept == context))
        return error;
    *function = "cuCtxPushCurrent";
    error = call->cuCtxPushCurrent_v2(context);
    if (error)
        calm_end();
    else if (calm.held && !calm.kept && !calm.pushed)
        calm.kept = context;
    else
        calm.pushed++;
    return error;
}

void calm_leave(const struct cuda_api *call)
{
    CUcontext was;
    if (calm.pushed) {
        calm.pushed--;
        call->cuCtxPopCurrent_v2(&was);
    }
    calm_end();
}

void calm_hold(void) { calm.held++; }

void calm_release(void)
{
    CUcontext was;
    if (--calm.held)
        return;
    if (calm.kept)
        calm.call->cuCtxPopCurrent_v2(&was);
    calm.kept = NULL;
    if (calm.relaxed && !calm.depth)
        put_back();
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
