/* The blocking road without work under way: no lock, no allocation, one read of the time stamp counter, a second only if it waited. */
#include "engine/run.h"

#include "engine/guard.h"
#include "engine/fastpath.h"
#include "engine/verify.h"
#include "engine/queue.h"
#include "base/clock.h"
#include "base/error.h"
#include "coll/modes.h"
#include "coll/select.h"
#include "os/caller.h"
#include "watch/drive.h"
#include "watch/journal.h"
#include "watch/rollcall.h"
#include "watch/verdict.h"

#include <stdio.h>
#include <string.h>

static inline uint64_t run_stamp(const struct coll *c, enum kind kind)
{
    return c->list_hash ? stamp_make_list(kind, c->type, c->oper, c->list_hash) : stamp_make(kind, c->type, c->oper, c->root, c->count);
}

static inline void run_gate(struct tutti_comm *comm)
{
    if (!comm->gate)
        comm->gate = select_algorithm(comm->world->rules, KIND_BARRIER, comm->crowded, 0);
}

/* Field by field: most of struct coll is nobody's business before its algorithm has set it, and clearing all of it costs as much as a
   quarter of a barrier. */
void run_number(struct tutti_comm *comm, struct coll *c, enum kind kind, uint32_t site, int64_t timeout_ns)
{
    struct op *op = &c->op;
    c->comm = comm;
    c->phase = GATE_START;
    c->fold_ticks = 0;
    c->answer = 0;
    op->watch = &comm->watch;
    op->site = site;
    op->next = 0;
    op->timeout_ns = timeout_ns;
    op->late = op->began = op->waited = false;
    op->slices = op->warned = 0;
    op->pauses = 0;
    op->claim.seq = ++comm->seq;
    store_relaxed64(&comm->numbered, comm->seq);     /* relaxed: only says whether a report is old */
    op->claim.descriptor = run_stamp(c, kind);
    op->claim.count = c->list_hash ? c->list_hash : c->count;
    op->claim.commit_at = 0;
    op->claim.differs = 0;
    op->claim.whole = false;
    run_gate(comm);
    c->gate = comm->gate;
    if (!c->algorithm)
        c->algorithm = kind == KIND_BARRIER ? comm->gate : select_algorithm(comm->world->rules, kind, comm->crowded, c->bytes);
    c->op.advance = c->algorithm->advance;
    if (c->ways)
        c->ways->choose(c);
}

void run_begin(struct coll *c, uint64_t tick)
{
    journal_begin(&c->comm->watch, c->op.claim.seq, c->op.claim.descriptor, c->count, c->op.site, tick);
}

/* A rank that cannot take part (no memory for its staging) tells the others before it gives up. What an older operation has left in the
   report is no reason. */
static void run_pass_on(struct coll *c, int error)
{
    char report[REPORT_TEXT];
    bool said = comm_read(c->comm, report) >= c->op.claim.seq && report[0];
    if (!said)
        comm_explain(c->comm, "%s at %s: %s", kind_name(stamp_kind(c->op.claim.descriptor)), arena_site_text(c->comm->watch.arena, c->op.site),
                     error_system(error));
    comm_give_up(c->comm, said ? report : error_system(error));
}

/* Its device failed before the result was in place, so C(k) holds for nobody: a reason of its own. The report says which and how. */
static bool run_device_failed(struct coll *c, int error)
{
    struct watch *w = &c->comm->watch;
    /* relaxed: our own word */
    if (!c->device || error != -EIO || load_relaxed64(&w->mine->placed) >= c->op.claim.seq)
        return false;
    char report[REPORT_TEXT];
    comm_read(c->comm, report);
    snprintf(w->mine->why, sizeof w->mine->why, "%.*s", ABORT_TEXT - 1, report[0] ? report : "it did not say how");
    verdict_quit(w, QUIT_DEVICE);
    return true;
}

/* How it failed: in the report, and to those who still wait for this rank. Its texts stay off the road of what succeeds. */
static __attribute__((noinline, cold)) void run_explain(struct coll *c, int result)
{
    struct tutti_comm *comm = c->comm;
    struct watch *w = &comm->watch;
    if (w->failed) {
        char room[REPORT_TEXT];
        struct text t = TEXT_IN(room);
        rollcall_failure(&t, w, &c->op);
        comm_show(comm, &t);
    } else if (result == -EINTR)
        comm_explain(comm, "interrupted in %s at %s: the interrupt function said stop; the comm is aborted",
                     kind_name(stamp_kind(c->op.claim.descriptor)), arena_site_text(w->arena, c->op.site));
    else if (result != -ECANCELED && !(load_acquire32(&w->attention) & ATTENTION_BROKEN) && !run_device_failed(c, result)) {
        if (result == -EPROTO || result == -EIO)
            comm_explain(comm, "%s at %s: what another rank has left in the arena cannot be true: somebody has written over it",
                         kind_name(stamp_kind(c->op.claim.descriptor)), arena_site_text(w->arena, c->op.site));
        run_pass_on(c, result);
    }
}

int run_end(struct coll *c, int result)
{
    struct tutti_comm *comm = c->comm;
    struct watch *w = &comm->watch;
    uint64_t began = load_relaxed64(&journal_hand(w->mine)->began);  /* relaxed: our own record */
    if (result == 0 && w->verify)
        result = verify_end(c);
    uint64_t ended = c->op.waited || c->fold_ticks || result < 0 ? clock_tick() : began + (uint64_t)c->op.pauses * w->pause_ticks;
    if (result < 0)
        run_explain(c, result);
    journal_end(w, result, ended);
    journal_count(w, FIGURE_OPERATIONS, 1);
    if (c->bytes)
        journal_count(w, FIGURE_BYTES, c->bytes);
    if (c->fold_ticks)
        journal_count(w, FIGURE_FOLD_TICKS, c->fold_ticks);
    if (c->op.waited || c->op.pauses)
        journal_count(w, FIGURE_WAIT_TICKS, ended - began > c->fold_ticks ? ended - began - c->fold_ticks : 0);
    else
        journal_count(w, FIGURE_CAME_LAST, 1);
    if (c->ways)
        c->ways->end(c, result);
    store_release64(&w->mine->ended, c->op.claim.seq);               /* E74 release */
    return result < 0 ? result : c->answer;
}

/* It does not come to its end as simply as others do: what it found cannot be true, what it did was timed, or its buffer is lent. r: what it came
   to so far. */
static __attribute__((noinline)) int run_rest(struct tutti_comm *comm, struct coll *c, struct fast_left left, enum kind kind, int64_t timeout_ns, int r)
{
    CALLER_KEPT;
    uint64_t ticks = c->fold_ticks;
    int answer = c->answer;
    fast_off(comm, c, left, kind, timeout_ns);
    c->fold_ticks = ticks;
    c->answer = answer;
    c->phase = FINISHING;
    if (r >= 0 && c->lends && coll_returned(c) == WAITING)
        r = drive_to_end(&c->op);
    return run_end(c, r < 0 ? r : 0);
}

/* It could not give what it was to: nobody has seen it arrive. */
static __attribute__((noinline)) int run_empty(struct tutti_comm *comm, struct coll *c, enum kind kind, uint32_t site, int64_t timeout_ns, int r)
{
    CALLER_KEPT;
    comm->calls[kind]++;
    run_number(comm, c, kind, site, timeout_ns);
    store_relaxed64(&comm->reported, comm->seq);     /* relaxed: as in comm_show. It was explained before it had its number */
    run_begin(c, clock_tick());
    return run_end(c, r);
}

/* The common case on the fast path: one phase, through the flags, everybody there within a short spin, no verdict. Else the state machine goes
   on from where this stopped. */
static int run_fast(struct tutti_comm *comm, struct coll *c, enum kind kind, uint32_t site, int64_t timeout_ns)
{
    struct fast s;
    fast_begin(comm, &s, run_stamp(c, kind), c->list_hash ? c->list_hash : c->count, site);
    c->comm = comm;
    c->op.claim.seq = s.claim.seq;
    c->op.claim.descriptor = s.claim.descriptor;
    c->op.claim.count = s.claim.count;
    c->fold_ticks = 0;
    c->answer = 0;
    if (SEEDED(torn_payload))
        watch_arrive(&comm->watch, &s.claim);
    int r = c->algorithm->before(c);
    if (r < 0)
        return run_empty(comm, c, kind, site, timeout_ns, r);
    fast_arrive(comm, &s, kind, c->bytes);
    c->usual = (c->fold || c->scaled) && modes_usual();
    uint64_t first = fast_look(comm, &s, 0, fast_backoff(comm, c->bytes));
    if (!fast_met(comm, &s, first))
        return fast_on(comm, c, fast_left(&s), kind, timeout_ns);
    r = c->algorithm->after(c);
    coll_given(c);
    if (r < 0 || c->lends || c->fold_ticks)
        return run_rest(comm, c, fast_left(&s), kind, timeout_ns, r);
    fast_end(comm, &s, kind);
    return c->answer;
}

int run_tune(struct tutti_comm *comm, enum kind kind, uint64_t tick)
{
    backoff_block(&comm->backoff[kind != KIND_BARRIER], comm->seq, tick, comm->calls[kind]);
    return 0;
}

static __attribute__((noinline)) int run_any(struct tutti_comm *comm, struct coll *c, enum kind kind, uint32_t site, const tutti_call *call)
{
    CALLER_KEPT;
    bool work = call && call->work;
    int r = enter_operation(comm, kind, site);
    if (r < 0)
        return r;
    if (work || (load_acquire32(&comm->watch.attention) & ATTENTION_WORK))
        return work_collective(comm, c, kind, site, call);
    run_number(comm, c, kind, site, enter_timeout(comm, call));
    c->op.keep = false;
    run_begin(c, clock_tick());
    return run_end(c, drive_to_end(&c->op));
}

int run_collective(struct tutti_comm *comm, struct coll *c, enum kind kind, uint32_t site, const tutti_call *call)
{
    run_gate(comm);
    if (!(call && call->work) && fast_may(comm) && c->algorithm && c->algorithm->before && !c->ways)
        return run_fast(comm, c, kind, site, enter_timeout(comm, call));
    return run_any(comm, c, kind, site, call);
}
