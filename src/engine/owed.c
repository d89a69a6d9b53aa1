/* Cost: what the end of the operation would have cost, or less: the other one has come since. */
#include "engine/owed.h"

#include "engine/operation.h"

#include "base/clock.h"
#include "coll/eager.h"
#include "os/caller.h"
#include "watch/drive.h"
#include "watch/journal.h"
#include "watch/verdict.h"

void owed_leave(struct tutti_comm *comm, const struct coll *c, uint32_t site)
{
    comm->engine.owed = (struct owed){
        .on = true, .type = c->type, .oper = c->oper, .root = c->root,
        .kind = c->algorithm->kind, .site = site, .count = c->count, .bytes = c->bytes,
        .descriptor = c->op.claim.descriptor
    };
}

/* What has been left is seen by all from here on, and who sleeps for it is awake. */
static void owed_seen(struct tutti_comm *comm)
{
    if (watch_heard(&comm->watch))
        watch_wake(&comm->watch, comm->seq);
}

bool owed_over(struct tutti_comm *comm)
{
    const struct owed *o = &comm->engine.owed;
    struct watch *w = &comm->watch;
    owed_seen(comm);
    struct claim claim;
    uint32_t next, pauses;
    claim_of_arrivals(&claim, comm->seq, o->descriptor, o->count);
    if (!watch_arrived_soon(w, &claim, watch_first(w, &claim, 0), OWED_SPINS, &next, &pauses)
        /* relaxed: after E1. Where there are devices there may be more to wait for */
        || load_relaxed32(&w->slot->devices) || !verdict_none(w))
        return false;
    if (pauses) {
        journal_count(w, FIGURE_WAITS, 1);
        journal_count(w, FIGURE_WAIT_TICKS, (uint64_t)pauses * w->pause_ticks);
    }
    eager_own(comm, comm->seq);
    comm->engine.owed.on = false;
    return true;
}

/* The record of the operation is open again while this rank waits: it is in it. */
static void reopen(struct coll *c)
{
    struct record *r = journal_hand(c->comm->watch.mine);
    if (load_relaxed64(&r->seq) == c->op.claim.seq)                  /* relaxed: our own record */
        store_release64(&r->ended, 0);                               /* E94 release */
    else
        operation_begin(c, clock_tick());              /* a message has been recorded since */
}

int owed_end(struct tutti_comm *comm)
{
    static const struct algorithm left = {
        .name = "left", .advance = coll_one_phase, .before = coll_nothing, .after = coll_nothing
    };
    CALLER_KEPT;
    const struct owed *o = &comm->engine.owed;
    struct coll c = {
        .algorithm = &left, .type = o->type, .oper = o->oper, .root = o->root, .count = o->count,
        .bytes = o->bytes
    };
    comm->engine.owed.on = false;
    owed_seen(comm);
    operation_describe(comm, &c, comm->seq, (enum kind)o->kind, o->site, comm->watch.timeout_ns);
    c.op.keep = false;
    c.phase = GATE_WAIT;
    /* it has been counted; operation_end counts it again */
    journal_count(&comm->watch, FIGURE_OPERATIONS, (uint64_t)-1);
    journal_count(&comm->watch, FIGURE_BYTES, -(uint64_t)c.bytes);
    reopen(&c);
    return operation_end(&c, drive_to_end(&c.op));
}
