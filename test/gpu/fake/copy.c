/* Copies and fills. From or to host memory that is not registered they have ended when the call
 * returns, as the real ones may; FAKE_CUDA_PINNED=require makes them misuse, since nobody who asks
 * for an asynchronous copy wants that. */
#include "fake/fake.h"
#include "fake/hooks.h"

#include <stdint.h>
#include <string.h>

enum { KINDS_MOST = 8 };

static struct { const char *call; struct fake_copied copied; } figures[KINDS_MOST];

/* no range: host memory that is not registered */
struct side { struct range *range; unsigned char *at; uint64_t begin; };

static CUresult side_of(CUdeviceptr at, size_t bytes, bool write, const char *call,
                        struct side *side)
{
    *side = (struct side){ .at = (unsigned char *)(uintptr_t)at };
    if (!address_is_ours(at)) {
        if (!at)
            return CUDA_ERROR_INVALID_VALUE;
        side->range = range_of_host(side->at, bytes);
        side->begin = at;
        return 0;
    }
    struct range *r = range_of(at);
    if (!r || r->kind == RANGE_RESERVED || bytes > r->end - at)
        return CUDA_ERROR_INVALID_VALUE;
    if (r->kind == RANGE_MAPPED && !(write ? r->writable : r->readable))
        return CUDA_ERROR_INVALID_VALUE;
    if (r->kind == RANGE_OPENED && atomic_load(&r->memory->header->freed))
        fake_misuse("stale mapping", "%s uses memory that process %d has freed", call, r->exporter);
    side->range = r;
    side->at = range_see(r, at);
    side->begin = r->kind == RANGE_HOST ? (uintptr_t)side->at : r->offset + (at - r->begin);
    return 0;
}

/* The host's side of it, if there is one. */
static void count(const char *call, const struct side *into, const struct side *out, size_t bytes)
{
    const struct side *host = out->begin == (uintptr_t)out->at ? out
        : into->begin == (uintptr_t)into->at ? into
        : NULL;
    for (int i = 0; i < KINDS_MOST; i++) {
        struct fake_copied *f = &figures[i].copied;
        const char *at = host ? (const char *)host->at : NULL;
        if (!figures[i].call)
            figures[i].call = call;
        if (strcmp(figures[i].call, call) != 0)
            continue;
        f->from = at && (!f->from || at < f->from) ? at : f->from;
        f->to = at && at + bytes > f->to ? at + bytes : f->to;
        f->copies++;
        f->bytes += bytes;
        return;
    }
}

struct fake_copied fakeCopied(const char *symbol)
{
    struct fake_copied copied = { 0, 0, NULL, NULL };
    pthread_mutex_lock(&fake.lock);
    for (int i = 0; i < KINDS_MOST && figures[i].call; i++)
        if (!strcmp(figures[i].call, symbol)) {
            copied = figures[i].copied;
            figures[i].copied = (struct fake_copied){ 0, 0, NULL, NULL };
        }
    pthread_mutex_unlock(&fake.lock);
    return copied;
}

/* How many of these bytes lie in one mapping of cuMemCreate's memory; all of them elsewhere. */
static size_t together(CUdeviceptr at, size_t bytes)
{
    const struct range *r = address_is_ours(at) ? range_of(at) : NULL;
    return r && r->kind == RANGE_MAPPED && r->end - at < bytes ? (size_t)(r->end - at) : bytes;
}

static size_t piece_of(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    size_t a = together(to, bytes), b = together(from, bytes);
    return a < b ? a : b;
}

static CUresult copy_piece(CUdeviceptr to, CUdeviceptr from, size_t bytes,
                           struct CUstream_st *stream, const char *call)
{
    struct side into, out;
    side_of(to, bytes, true, call, &into);
    side_of(from, bytes, false, call, &out);
    bool pageable = !into.range || !out.range;
    if (pageable && fake.pinned_only)
        fake_misuse("missing registration", "%s with %zu bytes of host memory at %p", call, bytes,
                    into.range ? (const void *)out.at : (const void *)into.at);
    struct op *op = op_new(OP_COPY, call);
    count(call, &into, &out, bytes);
    op->to = into.at;
    op->from = out.at;
    op->bytes = bytes;
    int lie = out.range ? lie_of(stream->context, out.range) : 0;
    op->lies = lie & LIE_COPY;
    op->hangs = lie & LIE_HANG;
    if (out.range)
        op_touch(op, out.range, out.begin, bytes, false);
    if (into.range)
        op_touch(op, into.range, into.begin, bytes, true);
    stream_enqueue(stream, op);
    return pageable ? stream_wait(stream, stream->enqueued) : 0;
}

/* Mappings side by side are one stretch of memory, here as there. */
static CUresult copy(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream handle,
                     const char *call)
{
    struct CUstream_st *stream = NULL;
    CUresult error = stream_of(handle, true, &stream);
    for (size_t done = 0, n; !error && done < bytes; done += n) {
        struct side side;
        n = piece_of(to + done, from + done, bytes - done);
        error = side_of(to + done, n, true, call, &side);
        if (!error)
            error = side_of(from + done, n, false, call, &side);
    }
    for (size_t done = 0, n; !error && done < bytes; done += n) {
        n = piece_of(to + done, from + done, bytes - done);
        error = copy_piece(to + done, from + done, n, stream, call);
    }
    return error;
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    ENTER;
    if (bytes && (!address_is_ours(to) || address_is_ours((uintptr_t)from)))
        return CUDA_ERROR_INVALID_VALUE;
    return copy(to, (uintptr_t)from, bytes, stream, __func__);
}

/* Rows of ordinary memory, one behind the other: all that we ask for. */
CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *c, CUstream stream)
{
    ENTER;
    bool from_host = c->srcMemoryType == CU_MEMORYTYPE_HOST,
         to_host = c->dstMemoryType == CU_MEMORYTYPE_HOST;
    CUdeviceptr from = from_host ? (uintptr_t)c->srcHost : c->srcDevice,
                to = to_host ? (uintptr_t)c->dstHost : c->dstDevice;
    if ((!from_host && c->srcMemoryType != CU_MEMORYTYPE_DEVICE)
        || (!to_host && c->dstMemoryType != CU_MEMORYTYPE_DEVICE)
        || c->srcPitch < c->WidthInBytes || c->dstPitch < c->WidthInBytes || c->srcXInBytes
        || c->srcY || c->dstXInBytes || c->dstY || from_host == address_is_ours(from)
        || to_host == address_is_ours(to))
        return CUDA_ERROR_INVALID_VALUE;
    if (c->srcPitch != c->WidthInBytes || c->dstPitch != c->WidthInBytes)
        return CUDA_ERROR_NOT_SUPPORTED;
    return copy(to, from, c->WidthInBytes * c->Height, stream, __func__);
}

CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    ENTER;
    if (bytes && (address_is_ours((uintptr_t)to) || !address_is_ours(from)))
        return CUDA_ERROR_INVALID_VALUE;
    return copy((uintptr_t)to, from, bytes, stream, __func__);
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    ENTER;
    if (bytes && (!address_is_ours(to) || !address_is_ours(from)))
        return CUDA_ERROR_INVALID_VALUE;
    return copy(to, from, bytes, stream, __func__);
}

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    ENTER;
    return copy(to, from, bytes, stream, __func__);
}

CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                           CUcontext from_context, size_t bytes, CUstream stream)
{
    ENTER;
    if (!to_context || !from_context)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (bytes && (!address_is_ours(to) || !address_is_ours(from)))
        return CUDA_ERROR_INVALID_VALUE;
    return copy(to, from, bytes, stream, __func__);
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t bytes, CUstream handle)
{
    ENTER;
    struct CUstream_st *stream = NULL;
    struct side into;
    CUresult error = stream_of(handle, true, &stream);
    if (error || !bytes)
        return error;
    if (!address_is_ours(to))
        return CUDA_ERROR_INVALID_VALUE;
    error = side_of(to, bytes, true, __func__, &into);
    if (error)
        return error;
    struct op *op = op_new(OP_SET, __func__);
    op->to = into.at;
    op->value = value;
    op->bytes = bytes;
    op_touch(op, into.range, into.begin, bytes, true);
    stream_enqueue(stream, op);
    return 0;
}
