/* A success takes few stores. The code for a failure stays off that path. */
#include "engine/operation.h"

#include "engine/verify.h"
#include "base/clock.h"
#include "base/error.h"
#include "coll/algorithms.h"
#include "watch/journal.h"
#include "watch/rollcall.h"
#include "watch/verdict.h"

#include <stdio.h>
#include <string.h>

/* Sets field by field: most fields of struct coll are not read before the algorithm has set them,
   and to clear them all costs a quarter of a barrier. */
void operation_describe(struct tutti_comm *comm, struct coll *c, uint64_t seq, enum kind kind,
                        uint32_t site, int64_t timeout_ns)
{
    struct op *op = &c->op;
    c->comm = comm;
    c->phase = GATE_START;
    c->fold.ticks = 0;
    c->answer = 0;
    op->watch = &comm->watch;
    op->site = site;
    op->next = 0;
    op->timeout_ns = timeout_ns;
    op->late = op->began = op->waited = false;
    op->slices = op->warned = 0;
    op->pauses = 0;
    store_relaxed64(&comm->numbered, seq);          /* relaxed: only says whether a report is old */
    claim_of_arrivals(&op->claim, seq, operation_fingerprint(c, kind),
                      c->list_hash ? c->list_hash : c->count);
    operation_gate(comm);
    c->gate = comm->coll.gate;
    if (!c->algorithm)
        c->algorithm = kind == KIND_BARRIER
            ? comm->coll.gate
            : select_algorithm(comm->world->rules, kind, select_comms(comm), c->bytes);
    c->op.advance = c->algorithm->advance;
    if (c->ways)
        c->ways->choose(c);
}

void operation_number(struct tutti_comm *comm, struct coll *c, enum kind kind, uint32_t site,
                      int64_t timeout_ns)
{
    operation_describe(comm, c, ++comm->seq, kind, site, timeout_ns);
}

void operation_begin(struct coll *c, uint64_t tick)
{
    const struct journal_entry e = {
        .seq = c->op.claim.seq, .descriptor = c->op.claim.descriptor, .count = c->count,
        .how = record_how(c->op.site, algorithm_number(c->algorithm)), .tick = tick
    };
    journal_enter(&c->comm->watch, &e);
}

/* A rank that cannot take part (no memory for its staging) tells the others before it gives up. A
   report of an older operation does not count as the reason. */
static void operation_pass_on(struct coll *c, int error)
{
    char report[REPORT_TEXT];
    bool said = comm_read(c->comm, report) >= c->op.claim.seq && report[0];
    if (!said)
        comm_explain(c->comm, "%s at %s: %s", kind_name(fingerprint_kind(c->op.claim.descriptor)),
                     arena_site_text(c->comm->watch.arena, c->op.site), error_system(error));
    comm_give_up(c->comm, said ? report : error_system(error));
}

/* This rank's device failed before the result was in place, so C(k) holds for no rank: a verdict
 * reason of its own. The report says which device, and how. */
static bool operation_device_failed(struct coll *c, int error)
{
    struct watch *w = &c->comm->watch;
    /* relaxed: our own word */
    if (!c->gpu.call || error != -EIO || load_relaxed64(&w->mine->placed) >= c->op.claim.seq)
        return false;
    char report[REPORT_TEXT];
    comm_read(c->comm, report);
    snprintf(w->mine->why, sizeof w->mine->why, "%.*s", ABORT_TEXT - 1,
             report[0] ? report : "it did not say how");
    verdict_quit(w, QUIT_DEVICE);
    return true;
}

/* Explains a failure: in the report, and to the ranks that still wait for this one. It stays off
 * the path of a success. */
static __attribute__((noinline, cold)) void operation_explain(struct coll *c, int result)
{
    bool said = comm_explain_end(c->comm, &c->op, result);
    if (said && result != DAMAGED)
        return;
    if (result != -ECANCELED && !(load_acquire32(&c->comm->watch.attention) & ATTENTION_BROKEN)
        && !operation_device_failed(c, result))
        operation_pass_on(c, error_told(result));
}

int operation_end(struct coll *c, int result)
{
    struct tutti_comm *comm = c->comm;
    struct watch *w = &comm->watch;
    uint64_t began = load_relaxed64(&journal_hand(w->mine)->began);  /* relaxed: our own record */
    if (result == 0 && w->verify)
        result = verify_end(c);
    bool exact = c->op.waited || c->fold.ticks || result < 0;
    uint64_t ended = exact
        ? clock_tick()
        : began + (uint64_t)c->op.pauses * w->pause_ticks;
    if (result < 0)
        operation_explain(c, result);
    result = error_told(result);
    journal_end_by(w, result, ended, exact);
    journal_count(w, FIGURE_OPERATIONS, 1);
    if (c->bytes)
        journal_count(w, FIGURE_BYTES, c->bytes);
    if (c->fold.ticks)
        journal_count(w, FIGURE_FOLD_TICKS, c->fold.ticks);
    if (c->op.waited || c->op.pauses) {
        journal_count(w, FIGURE_WAITS, 1);
        journal_count(w, FIGURE_WAIT_TICKS,
                      ended - began > c->fold.ticks ? ended - began - c->fold.ticks : 0);
    }
    if (c->ways)
        c->ways->end(c, result);
    store_release64(&w->mine->ended, c->op.claim.seq);               /* E74 release */
    return result < 0 ? result : c->answer;
}

void operation_tune(struct tutti_comm *comm, enum kind kind, uint64_t tick)
{
    backoff_block(&comm->engine.backoff[kind != KIND_BARRIER], comm->seq, tick,
                  comm->engine.calls[kind]);
}
