/* Device memory adds one word to an operation: each rank raises it and waits for all others. Beside
 * its copies, an operation with a device costs one more exchange of lines; an operation of a comm
 * that has never seen a device, one load. A host rank's result is in place when its algorithm is
 * done. It raises the word too, so that one rule holds for all. */
#include "coll/coll.h"

void coll_publish_device(struct coll *c, uint64_t card)
{
    struct watch *w = &c->comm->watch;
    struct arrival *mine = &w->mine->arrival[c->op.claim.seq & 1];
    /* relaxed: E1 publishes it, for this operation and so for every later one */
    if (!load_relaxed32(&w->slot->devices))
        store_relaxed32(&w->slot->devices, 1);                       /* relaxed: as above */
    store_relaxed64(&mine->more[DEVICE_WORD], c->op.claim.seq);      /* relaxed: as above */
    store_relaxed64(&mine->more[CARD_WORD], card);                   /* relaxed: as above */
}

bool coll_any_device(const struct coll *c)
{
    const struct watch *w = &c->comm->watch;
    /* relaxed: after the gate; a rank with a device has stored it before (E1) */
    if (!load_relaxed32(&w->slot->devices))
        return false;
    for (uint32_t p = 0; p < w->size; p++)
        if (watch_device(w, p, c->op.claim.seq))
            return true;
    return false;
}

uint64_t coll_card(const struct coll *c, uint32_t p)
{
    const struct watch *w = &c->comm->watch;
    if (!watch_device(w, p, c->op.claim.seq))
        return 0;
    /* relaxed: after E1 */
    return load_relaxed64(&watch_arrival(w, p, c->op.claim.seq)->more[CARD_WORD]);
}

void coll_say_mapped(struct coll *c, bool ok)
{
    struct watch *w = &c->comm->watch;
    watch_raise(w, &w->mine->mapped, 2 * c->op.claim.seq + ok);      /* E71 release */
}

int coll_all_mapped(struct coll *c, bool *all)
{
    struct watch *w = &c->comm->watch;
    uint64_t tried = 2 * c->op.claim.seq;
    *all = true;
    for (uint32_t p = 0; p < w->size; p++) {
        uint64_t said = load_acquire64(&w->members[p].mapped);       /* E71 acquire */
        if (said < tried) {
            c->op.wait = wait_for(&w->members[p].mapped, tried, p);
            return WAITING;
        }
        *all &= said == tried + 1;
    }
    return DONE;
}

/* This rank's part of the end. 0 or less: the result of gpu.place. */
static int complete_mine(struct coll *c)
{
    struct watch *w = &c->comm->watch;
    if (load_relaxed64(&w->mine->placed) >= c->op.claim.seq)         /* relaxed: our own word */
        return DONE;
    int r = c->gpu.call && c->gpu.place ? c->gpu.place(c) : DONE;
    if (r == WAITING)
        return watch_poll(&c->op);
    if (r == DONE)
        watch_raise(w, &w->mine->placed, c->op.claim.seq);           /* E70 release */
    return r;
}

int coll_device_complete(struct coll *c)
{
    struct watch *w = &c->comm->watch;
    if (!coll_any_device(c))
        return DONE;
    /* used from the next operation on: all ranks have seen the same arrivals */
    c->comm->coll.devices = true;
    int r = complete_mine(c);
    if (r != DONE)
        return r;
    for (uint32_t p = 0; p < w->size; p++)
        if (load_acquire64(&w->members[p].placed) < c->op.claim.seq) {       /* E70 acquire */
            c->op.wait = wait_for(&w->members[p].placed, c->op.claim.seq, p);
            return WAITING;
        }
    return DONE;
}
