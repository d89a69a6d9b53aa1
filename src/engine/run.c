/* The blocking road without work under way: no lock, no allocation, one read of the time stamp counter, a second only if it waited. */
#include "engine/run.h"

#include "engine/fastpath.h"
#include "engine/guard.h"
#include "engine/queue.h"
#include "base/clock.h"
#include "coll/modes.h"
#include "os/caller.h"
#include "watch/drive.h"

/* It does not come to its end as simply as others do: what it found cannot be true, what it did was timed, or its buffer is lent. r: what it came
   to so far. */
static __attribute__((noinline)) int run_rest(struct tutti_comm *comm, struct coll *c, struct fast_left left, enum kind kind, int64_t timeout_ns, int r)
{
    CALLER_KEPT;
    uint64_t ticks = c->fold.ticks;
    int answer = c->answer;
    fast_off(comm, c, left, kind, timeout_ns);
    c->fold.ticks = ticks;
    c->answer = answer;
    c->phase = FINISHING;
    if (r >= 0 && c->lends && coll_returned(c) == WAITING)
        r = drive_to_end(&c->op);
    return operation_end(c, r < 0 ? r : 0);
}

/* It could not give what it was to: nobody has seen it arrive. */
static __attribute__((noinline)) int run_empty(struct tutti_comm *comm, struct coll *c, enum kind kind, uint32_t site, int64_t timeout_ns, int r)
{
    CALLER_KEPT;
    comm->engine.calls[kind]++;
    operation_number(comm, c, kind, site, timeout_ns);
    store_relaxed64(&comm->reported, comm->seq);     /* relaxed: as in comm_show. It was explained before it had its number */
    operation_begin(c, clock_tick());
    return operation_end(c, r);
}

/* The common case on the fast path: one phase, through the flags, everybody there within a short spin, no verdict. Else the state machine goes
   on from where this stopped. */
static int run_fast(struct tutti_comm *comm, struct coll *c, enum kind kind, uint32_t site, int64_t timeout_ns)
{
    struct fast s;
    fast_begin(comm, &s, operation_stamp(c, kind), c->list_hash ? c->list_hash : c->count, site);
    c->comm = comm;
    c->op.claim.seq = s.claim.seq;
    c->op.claim.descriptor = s.claim.descriptor;
    c->op.claim.count = s.claim.count;
    c->fold.ticks = 0;
    c->answer = 0;
    int r = c->algorithm->before(c);
    if (r < 0)
        return run_empty(comm, c, kind, site, timeout_ns, r);
    fast_arrive(comm, &s, kind, c->bytes);
    c->fold.usual = (c->fold.kernel || c->fold.scaled) && modes_usual();
    uint64_t first = fast_look(comm, &s, 0, fast_backoff(comm, c->bytes));
    if (!fast_met(comm, &s, first))
        return fast_on(comm, c, fast_left(&s), kind, timeout_ns);
    r = c->algorithm->after(c);
    coll_given(c);
    if (r < 0 || c->lends || c->fold.ticks)
        return run_rest(comm, c, fast_left(&s), kind, timeout_ns, r);
    fast_end(comm, &s, kind);
    return c->answer;
}

static __attribute__((noinline)) int run_any(struct tutti_comm *comm, struct coll *c, enum kind kind, uint32_t site, const tutti_call *call)
{
    CALLER_KEPT;
    bool work = call && call->work;
    int r = guard_operation(comm, kind, site);
    if (r < 0)
        return r;
    if (work || (load_acquire32(&comm->watch.attention) & ATTENTION_WORK))
        return queue_collective(comm, c, kind, site, call);
    operation_number(comm, c, kind, site, guard_timeout(comm, call));
    c->op.keep = false;
    operation_begin(c, clock_tick());
    return operation_end(c, drive_to_end(&c->op));
}

int run_collective(struct tutti_comm *comm, struct coll *c, enum kind kind, uint32_t site, const tutti_call *call)
{
    operation_gate(comm);
    if (!(call && call->work) && fast_may(comm) && c->algorithm && c->algorithm->before && !c->ways)
        return run_fast(comm, c, kind, site, guard_timeout(comm, call));
    return run_any(comm, c, kind, site, call);
}
