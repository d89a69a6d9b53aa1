/* The device folds with one launch, over all ranks' elements in rank order. The CPU's fold has the
 * same order, so the bits are the same. */
#include "gpu/direct.h"

#include "gpu/kernels.h"
#include "gpu/streams.h"

#include <errno.h>
#include <string.h>

/* A kernel reads and writes whole elements. A rank checks only its own buffers: a peer's buffer is
 * aligned here as it is there, since allocations begin at multiples of 256. */
static bool is_aligned(const struct coll *c)
{
    size_t part = c->type == TUTTI_C64 || c->type == TUTTI_C128 ? c->width / 2 : c->width;
    const struct device_call *d = c->gpu.call;
    return (!d->send.bytes || d->send.pointer.address % part == 0)
        && (!d->recv.bytes || d->recv.pointer.address % part == 0);
}

bool direct_can_fold(struct coll *c, struct text *why)
{
    struct gpu *gpu = c->gpu.call->gpu;
    CUfunction function;
    if (c->comm->watch.size > KERNEL_INPUTS) {
        text_add(why, "there are more than %d ranks", KERNEL_INPUTS);
        return false;
    }
    if (!is_aligned(c)) {
        text_add(why, "a buffer does not begin at a multiple of its elements' size");
        return false;
    }
    if (gpu_enter(gpu, why) < 0)
        return false;
    int r = kernels_get(gpu_kernels(gpu), gpu_api(gpu), c->type, c->oper, &function, why);
    gpu_leave(gpu);
    return r == 0;
}

void direct_add_input(struct coll *c, struct kernel_fold *fold, uint32_t p, CUdeviceptr at)
{
    const struct watch *w = &c->comm->watch;
    fold->in[fold->inputs] = at;
    if (c->fold.scaled && p == w->me)
        memcpy(fold->factor[fold->inputs], c->fold.factor, sizeof c->fold.factor);
    for (int i = 0; c->fold.scaled && p != w->me && i < 2; i++)
        /* relaxed: after E1 */
        fold->factor[fold->inputs][i] = load_relaxed64(
            &watch_arrival(w, p, c->op.claim.seq)->payload[FACTOR_WORD + i]);
    fold->inputs++;
}

uint32_t direct_fold_ranks(const struct coll *c)
{
    uint32_t me = c->comm->watch.me;
    switch (c->algorithm->kind) {
    case KIND_SCAN: return me + 1;
    case KIND_EXSCAN: return me;
    default: return c->comm->watch.size;
    }
}

int direct_launch(struct coll *c, const struct kernel_fold *fold)
{
    struct device_call *d = c->gpu.call;
    struct text why = TEXT_IN(d->streams->words);
    text_clear(&why);
    int r = gpu_enter(d->gpu, &why);
    if (r == 0) {
        d->streams->busy = true;
        gpu_named(d->gpu, &why);
        r = kernels_fold(gpu_kernels(d->gpu), gpu_api(d->gpu), c->type, c->oper, fold,
                         d->streams->side[STREAM_OUT].stream, &why);
        gpu_leave(d->gpu);
    }
    return r < 0 ? device_failed(c, r == -ENOMEM ? r : -EIO) : 0;
}

int direct_fold(struct coll *c)
{
    struct device_call *d = c->gpu.call;
    uint32_t me = c->comm->watch.me, ranks = direct_fold_ranks(c);
    enum kind kind = c->algorithm->kind;
    struct chunk share = { 0, c->count };
    if (kind == KIND_ALL_REDUCE && !d->direct->leader)
        share = direct_share(c, c->count, me);
    struct kernel_fold fold = {
        .out = d->recv.pointer.address + share.first * c->width,
        .count = share.count, .divisor = ranks
    };
    size_t first = kind == KIND_REDUCE_SCATTER ? me * c->count : share.first;
    for (uint32_t p = 0; p < ranks; p++)
        direct_add_input(c, &fold, p, direct_send(c, p) + first * c->width);
    return direct_launch(c, &fold);
}
