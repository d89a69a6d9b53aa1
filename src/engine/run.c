/* The blocking path without work under way: no lock, no allocation, one read of the time stamp
 * counter, a second one only if it waited. */
#include "engine/run.h"

#include "engine/fastpath.h"
#include "engine/guard.h"
#include "engine/queue.h"
#include "base/clock.h"
#include "coll/modes.h"
#include "coll/early.h"
#include "os/caller.h"
#include "watch/drive.h"

/* After run_take: peer data was invalid, a fold was timed, or peers still read this rank's buffer.
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
    return s->result >= 0 && !c->lends && !c->fold.ticks;
}

/* Runs a one-phase operation through the flags. */
static int run_fast(struct tutti_comm *comm, struct coll *c, enum kind kind, uint32_t site,
                    int64_t timeout_ns)
{
    static const struct fast_op op = { run_put, run_meanwhile, run_reads, run_take };
    struct fast s;
    uint64_t count = c->list_hash ? c->list_hash : c->count;
    fast_begin(comm, &s, kind, operation_fingerprint(c, kind), count, c->bytes, site,
               algorithm_number(c->algorithm));
    switch (fast_run(comm, &op, &s, c)) {
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

int run_collective(struct tutti_comm *comm, struct coll *c, enum kind kind, uint32_t site,
                   const tutti_call *call)
{
    operation_gate(comm);
    if (!(call && call->work) && fast_may(comm) && c->algorithm && c->algorithm->before && !c->ways)
        return run_fast(comm, c, kind, site, guard_timeout(comm, call));
    return run_any(comm, c, kind, site, call);
}
