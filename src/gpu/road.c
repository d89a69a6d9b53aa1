/* There are three roads. host_copy: copies in host memory take part in an operation of one phase.
 * pinned: the pipeline protocol copies to and from its slots. direct: each rank reads the others'
 * device memory in place, if the rules say so; if that cannot be done, pinned follows. */
#include "gpu/road.h"

#include "coll/select.h"
#include "gpu/device.h"
#include "gpu/pinned.h"
#include "gpu/direct.h"
#include "gpu/host_copy.h"
#include "gpu/streams.h"

static void road_choose(struct coll *c)
{
    c->gpu.place = NULL;
    c->gpu.mover = NULL;
    c->gpu.call->state = DEVICE_NEW;
    c->gpu.call->direct = NULL;
    if (c->algorithm->before)
        host_copy_choose(c);
    else if (select_road(c->comm->world->rules, ROAD_PLACE, c->bytes) != ROAD_PINNED
             || select_road(c->comm->world->rules, ROAD_STAGED, c->bytes) != ROAD_PINNED)
        direct_choose(c);
    else
        pinned_choose(c);
}

static void road_end(struct coll *c, int result)
{
    struct device_call *d = c->gpu.call;
    if (d->streams && result < 0)
        streams_drain(d->streams);
    else if (d->streams)
        streams_ended(d->streams);
    direct_end(c, result);
    if (d->swapped) {
        c->send = d->caller_send;
        c->recv = d->caller_recv;
        if (c->lists.n)
            c->lists = d->caller_lists;
    }
    c->gpu.call = NULL;
    c->ways = NULL;
    c->gpu.mover = NULL;
    device_drop(d);
}

const struct call_ways road_ways = { road_choose, device_keep, road_end };
