/* Copies out of the device, the CPU's fold and copies back run at the same time, each some rounds
 * behind the one before. PCIe carries both directions at once, and a round is large enough
 * (coll/pipeline.h) to be worth a start. A rank's own pipeline and each pipeline that it reads are
 * registered at first use. They stay in place as long as the comm. */
#include "gpu/pinned.h"

#include "coll/parts.h"
#include "coll/pipeline.h"
#include "gpu/streams.h"
#include "os/memory.h"

#include <errno.h>
#include <stdlib.h>

/* Registers the pipeline that `at` is in, unless it is registered. Other memory is copied as it is:
   the caller's own, and other memory of the arena (what host ranks lend in a comm's first operation
   with a device). */
static int pinned_register(struct coll *c, const char *at)
{
    const struct watch *w = &c->comm->watch;
    const struct arena *arena = &c->comm->world->arena;
    size_t bytes = pipeline_all_slots(c);
    if (at < arena->base || (uint64_t)(at - arena->base) >= arena->bytes)
        return 0;
    for (uint32_t i = 0; i < w->size; i++) {
        uint32_t p = (w->me + i) % w->size;
        char *pipeline = coll_peer(c, p, bytes);
        if (pipeline && at >= pipeline && at < pipeline + bytes)
            return streams_pipeline(c->gpu.call->streams, p, pipeline,
                                    layout_round(bytes, memory_page()), c->comm->birth);
    }
    return 0;
}

static int pinned_copy(struct coll *c, int side, void *to, const void *from, size_t bytes)
{
    struct device_call *d = c->gpu.call;
    int r = d->error;
    if (r == 0 && (device_holds(d, to) || device_holds(d, from)))
        r = pinned_register(c, device_holds(d, to) ? from : to);
    if (r < 0 && !d->error)
        d->error = device_failed(c, r);
    return r < 0 ? r : device_copy(c, side, to, from, bytes);
}

/* A slot for each round that may be under way. */
static int pinned_reserve(struct coll *c, size_t bytes)
{
    struct device_call *d = c->gpu.call;
    d->scratch = layout_round(bytes, memory_page());
    int r = streams_bounce(d->streams, STREAM_OUT, PIPELINE_DEPTH * d->scratch);
    return r < 0 ? device_failed(c, r) : 0;
}

static char *pinned_scratch(struct coll *c, uint64_t round)
{
    return c->gpu.call->streams->bounce[STREAM_OUT].at
        + round % PIPELINE_DEPTH * c->gpu.call->scratch;
}

const struct mover pinned_mover = {
    device_ready, device_room, pinned_copy, device_mark, device_passed,
    pinned_reserve, pinned_scratch
};

static int pinned_step(struct op *op)
{
    struct coll *c = (struct coll *)op;
    struct device_call *d = c->gpu.call;
    if (d->state == DEVICE_NEW) {
        int r = device_open(c);
        if (r < 0)
            return r;
        coll_publish_device(c, 0);
        d->state = DEVICE_READY;
    }
    return c->algorithm->advance(op);
}

static int pinned_advance(struct op *op) { return device_advance(op, pinned_step); }

void pinned_choose(struct coll *c)
{
    c->op.advance = pinned_advance;
    c->gpu.mover = &pinned_mover;
}
