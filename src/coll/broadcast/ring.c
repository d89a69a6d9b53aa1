/* Broadcast of large data: the root copies chunk after chunk into its ring, the others copy them out behind it. Written once, read once
 * by each. C(k) asks for everybody's arrival and for the root's last chunk: from then on the data needs no root. */
#include "coll/ring.h"

#include "pattern/chunk.h"

#include <errno.h>

static struct chunk broadcast_chunk(const struct coll *c, uint64_t round)
{
    return chunk_of(c->count, 1, c->ring.piece, round, 0);
}

static int broadcast_give(struct coll *c)
{
    struct watch *w = &c->comm->watch;
    while (c->ring.in < c->ring.total) {
        if (ring_licence(c, c->ring.in) == WAITING)
            return WAITING;
        struct chunk chunk = broadcast_chunk(c, c->ring.in);
        coll_copy(c, c->comm->stage.ring + (c->ring.base + c->ring.in) % RING_DEPTH * c->ring.slot,
                  (const char *)c->send + chunk.first * c->width, chunk.count * c->width);
        c->ring.in++;
        watch_raise(w, &w->mine->produced, c->ring.base + c->ring.in);       /* E16 release */
    }
    return watch_all_arrived(&c->op);
}

static int broadcast_take(struct coll *c)
{
    struct watch *w = &c->comm->watch;
    if (c->phase == GATE_WAIT && watch_all_arrived(&c->op) == WAITING)
        return WAITING;
    c->phase = AFTER_GATE;
    while (c->ring.out < c->ring.total) {
        if (ring_await(c, offsetof(struct member, produced), c->ring.out + 1, c->root) == WAITING)
            return WAITING;
        const char *ring = coll_peer(c, (uint32_t)c->root, RING_DEPTH * c->ring.slot);
        if (!ring)
            return -EPROTO;
        struct chunk chunk = broadcast_chunk(c, c->ring.out);
        coll_copy(c, (char *)c->recv + chunk.first * c->width, ring + (c->ring.base + c->ring.out) % RING_DEPTH * c->ring.slot,
                  chunk.count * c->width);
        c->ring.out++;
        watch_raise(w, &w->mine->consumed, c->ring.base + c->ring.out);      /* E18 release */
    }
    return DONE;
}

static int broadcast_ring_advance(struct op *op)
{
    struct coll *c = (struct coll *)op;
    bool root = (uint32_t)c->root == op->watch->me;
    if (c->phase == GATE_START) {
        int r = ring_open(c, 1, offsetof(struct member, produced), c->root, root);
        if (r < 0)
            return r;
        watch_arrive(op->watch, &op->claim);
        c->phase = GATE_WAIT;
    }
    int step = root ? broadcast_give(c) : broadcast_take(c);
    if (step == DONE)
        ring_close(c);
    return step;
}

const struct algorithm broadcast_ring = {
    "ring", KIND_BROADCAST, SIZE_MAX, broadcast_ring_advance, NULL, NULL, "the root's ring of chunks: written once, read once by each; any size"
};
