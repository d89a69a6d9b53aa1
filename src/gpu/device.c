/* The host waits until the caller's stream has done what it had to do before the call; only then
 * are copies handed to the device. So no copy of ours stands in a queue behind the caller's work,
 * and an operation that fails meanwhile has nothing to take back. This costs the time between the
 * end of that work and the next look at it. The call itself marks the stream, in the caller's
 * thread, since the stream may be gone later. */
#include "gpu/device.h"

#include "base/clock.h"
#include "gpu/calm.h"
#include "gpu/segment.h"
#include "gpu/streams.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { ASK_NS = 20000 };          /* between two questions whether the caller's stream is ready */

static bool buffer_holds(const struct device_buffer *b, const void *at)
{
    uintptr_t address = (uintptr_t)at;
    return device_is(b) && b->bytes && address >= (uintptr_t)b->at
        && address - (uintptr_t)b->at < b->bytes;
}

bool device_holds(const struct device_call *d, const void *at)
{
    for (uint32_t i = 0; d->in_device && i < d->gives; i++)
        if (buffer_holds(&d->given[i], at))
            return true;
    for (uint32_t i = 0; d->out_device && i < d->takes; i++)
        if (buffer_holds(&d->taken[i], at))
            return true;
    return false;
}

/* ---- the call ---- */

/* Finds the driver's context of the caller's stream. Within gpu_enter. */
static int stream_context(struct device_call *d, CUcontext *context, struct text *why)
{
    const struct cuda_api *call = gpu_api(d->gpu);
    *context = gpu_context(d->gpu);
    if (!d->stream)
        return 0;
    CUresult error = call->cuStreamGetCtx(d->stream, context);
    if (!error)
        return 0;
    text_add(why, "call.stream is none of ");
    int r = gpu_failed(d->gpu, "cuStreamGetCtx", error, why);
    return error == CUDA_ERROR_INVALID_HANDLE || error == CUDA_ERROR_INVALID_CONTEXT
            || error == CUDA_ERROR_INVALID_VALUE
        ? -EINVAL
        : r;
}

static int stream_mark(struct device_call *d, struct text *why)
{
    const struct cuda_api *call = gpu_api(d->gpu);
    int capturing = CU_STREAM_CAPTURE_STATUS_NONE;
    CUresult error = call->cuStreamIsCapturing(d->stream, &capturing);
    if (capturing
        || (error >= CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED && error < CUDA_ERROR_UNKNOWN)) {
        text_add(why,
                 "%s is captured into a graph, which would keep none of what the ranks do with "
                 "each other; end the capture first",
                 d->stream ? "call.stream" : "the default stream");
        return -EINVAL;
    }
    if (error)
        return gpu_failed(d->gpu, "cuStreamIsCapturing", error, why);
    if (d->foreign)
        error = call->cuEventCreate(&d->before, CU_EVENT_DISABLE_TIMING);
    else {
        int r = gpu_event(d->gpu, &d->before, why);
        if (r < 0)
            return r;
    }
    if (error)
        return gpu_failed(d->gpu, "cuEventCreate", error, why);
    error = call->cuEventRecord(d->before, d->stream);
    return error ? gpu_failed(d->gpu, "cuEventRecord", error, why) : 0;
}

static int device_ordinal(const struct device_call *d)
{
    for (uint32_t i = 0; i < d->gives; i++)
        if (device_is(&d->given[i]))
            return d->given[i].pointer.device;
    for (uint32_t i = 0; i < d->takes; i++)
        if (device_is(&d->taken[i]))
            return d->taken[i].pointer.device;
    return 0;
}

static int all_mapped(const struct device_call *d, const struct device_buffer *all, uint32_t n,
                      struct text *why)
{
    int r = 0;
    for (uint32_t i = 0; i < n && r == 0; i++)
        if (all[i].bytes && device_is(&all[i]))
            r = segment_walk(gpu_api(d->gpu), &all[i].pointer, all[i].bytes, why);
    return r;
}

int device_begin(struct device_call *d, struct text *why)
{
    const struct cuda_api *call;
    CUcontext context, was;
    int r = gpu_open(device_ordinal(d), &d->gpu, why);
    if (r < 0)
        return r;
    call = gpu_api(d->gpu);
    r = gpu_enter(d->gpu, why);
    if (r == 0) {
        r = all_mapped(d, d->given, d->gives, why);
        if (r == 0)
            r = all_mapped(d, d->taken, d->takes, why);
        if (r == 0)
            r = stream_context(d, &context, why);
        if (r == 0 && context != gpu_context(d->gpu)) {
            d->foreign = context;
            CUresult error = call->cuCtxPushCurrent_v2(context);
            r = error ? gpu_failed(d->gpu, "cuCtxPushCurrent", error, why) : stream_mark(d, why);
            if (!error)
                call->cuCtxPopCurrent_v2(&was);
        } else if (r == 0)
            r = stream_mark(d, why);
        gpu_leave(d->gpu);
    }
    return r;
}

static void before_drop(struct device_call *d)
{
    if (d->before && d->foreign)
        gpu_event_destroy(d->gpu, d->before);
    else if (d->before)
        gpu_event_back(d->gpu, d->before);
    d->before = NULL;
}

void device_drop(struct device_call *d)
{
    if (d->gpu) {
        before_drop(d);
        gpu_close(d->gpu);
    }
    d->gpu = NULL;
    free(d->copies);
    if (d->given != &d->send)
        free(d->given);
    if (d->kept)
        free(d);
}

int device_keep(struct coll *c)
{
    struct device_call *d = malloc(sizeof *d);
    if (!d)
        return -ENOMEM;
    *d = *c->gpu.call;
    if (d->given == &c->gpu.call->send) {
        d->given = &d->send;
        d->taken = &d->recv;
    }
    d->kept = true;
    c->gpu.call = d;
    return 0;
}

/* ---- the operation ---- */

int device_failed(struct coll *c, int error)
{
    comm_explain(c->comm, "%s", c->gpu.call->streams->words);
    return error;
}

int device_open(struct coll *c)
{
    struct device_call *d = c->gpu.call;
    char words[500];
    struct text why = TEXT_IN(words);
    text_clear(&why);
    if (d->error) {                    /* before the operation began */
        comm_explain(c->comm, "%s", d->words);
        return d->error;
    }
    int r = streams_of(c->comm, d->gpu, &d->streams, &why);
    if (r < 0) {
        comm_explain(c->comm, "%s", words);
        return r;
    }
    for (int side = 0; side < 2; side++)
        d->marks[side] = d->streams->side[side].marks;
    return 0;
}

int device_advance(struct op *op, int (*step)(struct op *op))
{
    calm_hold();
    int r = step(op);
    calm_release();
    return r;
}

int device_ready(struct coll *c)
{
    struct device_call *d = c->gpu.call;
    if (!d->before)
        return DONE;
    uint64_t now = clock_ns();
    if (now - d->asked < ASK_NS)
        return watch_poll(&c->op);
    d->asked = now;
    const char *function = "cuThreadExchangeStreamCaptureMode";
    CUresult error = calm_begin(gpu_api(d->gpu));
    if (!error) {
        function = "cuEventQuery";
        error = gpu_api(d->gpu)->cuEventQuery(d->before);
        calm_end();
    }
    if (error == CUDA_ERROR_NOT_READY)
        return watch_poll(&c->op);
    struct text why = TEXT_IN(d->streams->words);
    text_clear(&why);
    if (error)
        return device_failed(c, gpu_failed(d->gpu, function, error, &why));
    before_drop(d);
    return DONE;
}

int device_copy(struct coll *c, int side, void *to, const void *from, size_t bytes)
{
    struct device_call *d = c->gpu.call;
    int r = d->error ? d->error
                     : streams_copy(d->streams, side, to, device_holds(d, to), from,
                                    device_holds(d, from), bytes);
    if (r < 0 && !d->error)
        d->error = device_failed(c, r);
    return r;
}

bool device_room(const struct coll *c, int side)
{
    return streams_room(c->gpu.call->streams, side);
}

int device_mark(struct coll *c, int side)
{
    struct device_call *d = c->gpu.call;
    int r = d->error;
    if (r == 0 && (r = streams_mark(d->streams, side)) < 0)
        d->error = device_failed(c, r);
    return r;
}

int device_passed(struct coll *c, int side, uint64_t *passed)
{
    struct device_call *d = c->gpu.call;
    int r = d->error;
    if (r == 0 && (r = streams_passed(d->streams, side, passed)) < 0)
        d->error = device_failed(c, r);
    else
        *passed -= d->marks[side];
    return r;
}
