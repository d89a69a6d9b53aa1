/* The blocking path without work under way: no lock, no allocation, one read of the time stamp
 * counter, a second one only if it waited. */
#include "engine/run.h"

#include "engine/fastpath.h"
#include "engine/guard.h"
#include "engine/owed.h"
#include "engine/queue.h"
#include "base/clock.h"
#include "coll/modes.h"
#include "coll/early.h"
#include "os/caller.h"
#include "watch/drive.h"

/* After run_take: peer data was invalid, or peers still read this rank's buffer.
   r: the result so far. */
static __attribute__((noinline))
int run_rest(struct tutti_comm *comm, struct coll *c, struct fast_saved s, enum kind kind,
             int64_t timeout_ns, int r)
{
    CALLER_KEPT;
    uint64_t ticks = c->fold.ticks;
    int answer = c->answer;
    fast_adopt(comm, c, s, kind, timeout_ns);
    c->fold.ticks = ticks;
    c->answer = answer;
    c->phase = FINISHING;
    if (r >= 0 && c->lends && coll_returned(c) == WAITING)
        r = drive_to_end(&c->op);
    return operation_end(c, r < 0 ? r : 0);
}

/* `before` failed: this rank has not arrived. */
static __attribute__((noinline)) int run_empty(struct tutti_comm *comm, struct coll *c,
                                               enum kind kind, uint32_t site, int64_t timeout_ns,
                                               int r)
{
    CALLER_KEPT;
    comm->engine.calls[kind]++;
    operation_number(comm, c, kind, site, timeout_ns);
    /* relaxed: as in comm_show. It was explained before it had its number */
    store_relaxed64(&comm->reported, comm->seq);
    operation_begin(c, clock_tick());
    return operation_end(c, r);
}

static inline int run_put(struct tutti_comm *comm, const struct fast *s, void *data)
{
    struct coll *c = data;
    c->comm = comm;
    /* whole: a fold of the caller's own that aborts has the claim judged (coll_heed_abort) */
    claim_of_arrivals(&c->op.claim, s->claim.seq, s->claim.descriptor, s->claim.count);
    c->fold.ticks = 0;
    c->answer = 0;
    return c->algorithm->before(c);
}

static inline void run_meanwhile(void *data)
{
    struct coll *c = data;
    c->fold.usual = (c->fold.kernel || c->fold.scaled) && modes_usual();
    if (c->expects)
        early_take(c);
}

static inline size_t run_reads(const void *data, size_t *from)
{
    const struct coll *c = data;
    *from = c->even.at;
    return c->bytes > INLINE_BYTES ? c->even.takes : 0;
}

static inline bool run_take(struct tutti_comm *comm, struct fast *s, void *data)
{
    struct coll *c = data;
    (void)comm;
    s->result = c->algorithm->after(c);
    coll_given(c);
    s->folded = c->fold.ticks;
    return s->result >= 0 && !c->lends;
}

static inline uint16_t *run_delay(struct tutti_comm *comm, const struct fast *s)
{
    return owed_delay(comm, s->kind, s->bytes);
}

/* Runs a one-phase operation through the flags. */
static inline __attribute__((always_inline))
int run_by(const struct fast_op *op, struct tutti_comm *comm, struct coll *c, enum kind kind,
           uint32_t site, int64_t timeout_ns)
{
    struct fast s;
    uint64_t count = c->list_hash ? c->list_hash : c->count;
    fast_begin(comm, &s, kind, operation_fingerprint(c, kind), count, c->bytes, site,
               algorithm_number(c->algorithm));
    switch (fast_run(comm, op, &s, c)) {
    case FAST_UNPUT:
        return run_empty(comm, c, kind, site, timeout_ns, s.result);
    case FAST_WAITING:
        return fast_resume(comm, c, fast_saved(&s), kind, timeout_ns);
    case FAST_TAKEN:
        return run_rest(comm, c, fast_saved(&s), kind, timeout_ns, s.result);
    case FAST_DONE:
        break;
    }
    return c->answer;
}

static int run_fast(struct tutti_comm *comm, struct coll *c, enum kind kind, uint32_t site,
                    int64_t timeout_ns)
{
    static const struct fast_op op = {
        .put = run_put, .meanwhile = run_meanwhile, .reads = run_reads, .take = run_take
    };
    return run_by(&op, comm, c, kind, site, timeout_ns);
}

/* The same of a rank that takes from one that leaves. */
static __attribute__((noinline)) int run_taker(struct tutti_comm *comm, struct coll *c,
                                               enum kind kind, uint32_t site, int64_t timeout_ns)
{
    static const struct fast_op op = {
        .put = run_put, .meanwhile = run_meanwhile, .reads = run_reads, .take = run_take,
        .delay = run_delay
    };
    return run_by(&op, comm, c, kind, site, timeout_ns);
}

/* The same of the rank that leaves: it is done when it has arrived, unless its buffer is lent. That
 * its result is in place is said beforehand: it has none. What it has written goes to the other one
 * while the program runs: a fence would wait for that. */
static __attribute__((noinline)) int run_giver(struct tutti_comm *comm, struct coll *c,
                                               enum kind kind, uint32_t site, int64_t timeout_ns)
{
    struct watch *w = &comm->watch;
    struct fast s;
    fast_begin(comm, &s, kind, operation_fingerprint(c, kind), c->count, c->bytes, site,
               algorithm_number(c->algorithm));
    s.result = run_put(comm, &s, c);
    if (s.result < 0)
        return run_empty(comm, c, kind, site, timeout_ns, s.result);
    if (!c->lends)
        store_release64(&w->mine->placed, s.claim.seq);              /* E70 release */
    fast_arrive_by(comm, &s, comm->world->beside.run);      /* its peer looks again by itself */
    /* relaxed: a hint; whoever gives device memory waits for no more than `placed` */
    if (c->lends || load_relaxed32(&w->slot->devices)) {
        s.wakes = watch_heard(w);
        return fast_resume(comm, c, fast_saved(&s), kind, timeout_ns);
    }
    if (s.wakes)
        watch_wake(w, s.claim.seq);
    if (c->fold.ticks)
        journal_count(w, FIGURE_FOLD_TICKS, c->fold.ticks);
    journal_well(s.record, 0);
    PROBE3(op_end, w->name, s.claim.seq, 0);
    store_release64(&w->mine->ended, s.claim.seq);                   /* E74 release */
    owed_leave(comm, c, site);
    return 0;
}

static __attribute__((noinline)) int run_any(struct tutti_comm *comm, struct coll *c,
                                             enum kind kind, uint32_t site, const tutti_call *call)
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

/* First the end of what this rank has left. */
static __attribute__((noinline)) int run_after(struct tutti_comm *comm, struct coll *c,
                                               enum kind kind, uint32_t site,
                                               const tutti_call *call)
{
    int r = owed_end(comm);
    return r < 0 ? r : run_collective(comm, c, kind, site, call);
}

int run_collective(struct tutti_comm *comm, struct coll *c, enum kind kind, uint32_t site,
                   const tutti_call *call)
{
    operation_gate(comm);
    if (!(call && call->work) && fast_may(comm) && c->algorithm && c->algorithm->before && !c->ways)
        switch (owes(comm, c, kind)) {
        case OWES_NOT:
            return run_fast(comm, c, kind, site, guard_timeout(comm, call));
        case OWES_GIVER:
            return run_giver(comm, c, kind, site, guard_timeout(comm, call));
        case OWES_TAKER:
            return run_taker(comm, c, kind, site, guard_timeout(comm, call));
        }
    if (comm->engine.owed.on && !load_acquire32(&comm->watch.attention))
        return run_after(comm, c, kind, site, call);
    return run_any(comm, c, kind, site, call);
}
