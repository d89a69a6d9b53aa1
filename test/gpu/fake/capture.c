/* Captures into graphs, and whom they forbid what. A call that may wait for the device, also behind
 * its caller's back, is forbidden while any thread captures in mode GLOBAL, and to a thread that
 * captures itself; it then also ends the capture. A thread that has exchanged its mode may do it.
 * By CUDA's documents: an H100's driver (580) lets some of these pass. What is captured is not
 * kept. */
#include "fake/fake.h"

#include <string.h>

enum { GLOBAL = 0, THREAD_LOCAL = 1, RELAXED = 2 };

static _Thread_local int mode = GLOBAL;

static bool is_unsafe(const char *call)
{
    static const char *const those[] = {
        "cuEventQuery", "cuEventSynchronize", "cuStreamQuery", "cuStreamSynchronize",
        "cuCtxSynchronize", "cuMemAlloc_v2", "cuMemFree_v2", "cuMemHostRegister_v2",
        "cuMemHostUnregister", "cuIpcOpenMemHandle_v2", "cuIpcCloseMemHandle", "cuModuleLoadData",
        "cuModuleLoadDataEx", "cuModuleUnload"
    };
    for (size_t i = 0; i < sizeof those / sizeof those[0]; i++)
        if (!strcmp(those[i], call))
            return true;
    return false;
}

static bool is_captured(const struct CUstream_st *stream)
{
    return !stream->destroyed && stream->capture && stream->capturer;
}

CUresult capture_allows(const char *call)
{
    CUresult error = 0;
    for (int i = 0; i < fake.streams && mode != RELAXED; i++) {
        struct CUstream_st *s = fake.stream[i];
        bool own = s->capturer == &mode;
        if (!is_captured(s) || s->capture_mode == RELAXED
            || (!own && (mode == THREAD_LOCAL || s->capture_mode != GLOBAL)) || !is_unsafe(call))
            continue;
        s->capture = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
        error = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    return error;
}

/* The legacy default stream would have to wait for a stream that is captured. ends: the call ends
 * that capture. */
CUresult capture_beside(const struct CUctx_st *context, bool ends)
{
    CUresult error = 0;
    for (int i = 0; i < fake.streams; i++) {
        struct CUstream_st *s = fake.stream[i];
        if (!is_captured(s) || s->context != context || (s->flags & CU_STREAM_NON_BLOCKING))
            continue;
        error = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
        if (ends)
            s->capture = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
    }
    return error;
}

CUresult cuThreadExchangeStreamCaptureMode(int *other)
{
    ENTER;
    int was = mode;
    if (*other < GLOBAL || *other > RELAXED)
        return CUDA_ERROR_INVALID_VALUE;
    mode = *other;
    *other = was;
    return 0;
}

CUresult cuStreamBeginCapture_v2(CUstream handle, int wanted)
{
    ENTER;
    struct CUstream_st *stream = NULL;
    if (!handle || wanted < GLOBAL || wanted > RELAXED)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult error = stream_of(handle, false, &stream);
    if (!error && stream->capture)
        error = CUDA_ERROR_ILLEGAL_STATE;
    if (error)
        return error;
    stream->capture = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    stream->capture_mode = wanted;
    stream->capturer = &mode;
    return 0;
}

CUresult cuStreamEndCapture(CUstream handle, void **graph)
{
    ENTER;
    struct CUstream_st *stream = NULL;
    CUresult error = stream_of(handle, false, &stream);
    if (!error && !stream->capture)
        error = CUDA_ERROR_ILLEGAL_STATE;
    if (error)
        return error;
    if (stream->capture == CU_STREAM_CAPTURE_STATUS_INVALIDATED)
        error = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    *graph = error ? NULL : stream;
    stream->capture = CU_STREAM_CAPTURE_STATUS_NONE;
    stream->capturer = NULL;
    return error;
}
