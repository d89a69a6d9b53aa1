/* The barrier. In a straight line where everybody is there soon, through the flags: it needs none of what describes an operation's data, and to
 * fill that in was half of its instructions. Whatever is out of the common (nobody comes, a verdict, work under way, another gate) goes the way
 * of all operations, from where this stopped. Cost: some 160 instructions and N - 1 line transfers. */
#define TUTTI_NO_SITES
#include "api/check.h"
#include "api/enter.h"
#include "api/run.h"
#include "base/clock.h"
#include "watch/drive.h"
#include "watch/journal.h"
#include "watch/verdict.h"

static int barrier_any(struct tutti_comm *comm, uint32_t site, const tutti_call *call)
{
    struct coll c;
    check_describe(&c, NULL, NULL, 0, TUTTI_I8, TUTTI_SUM, 0);
    return run_collective(comm, &c, KIND_BARRIER, site, call);
}

/* This rank has arrived; `next` is the first that has not. */
static __attribute__((noinline)) int barrier_on(struct tutti_comm *comm, uint32_t site, const tutti_call *call, uint32_t next, uint32_t pauses)
{
    struct coll c;
    check_describe(&c, NULL, NULL, 0, TUTTI_I8, TUTTI_SUM, 0);
    comm->seq--;                                     /* run_number gives it the same number again */
    run_number(comm, &c, KIND_BARRIER, site, enter_timeout(comm, call));
    c.op.keep = false;
    c.op.next = next;
    c.op.pauses = pauses;
    c.phase = GATE_WAIT;
    return run_end(&c, drive_to_end(&c.op));
}

/* What run_end does for a barrier that went well. */
static inline void barrier_end(struct watch *w, uint64_t seq, uint64_t began, uint32_t pauses)
{
    uint64_t waited = (uint64_t)pauses * w->pause_ticks;
    journal_end(w, 0, began + waited);
    journal_count(w, FIGURE_OPERATIONS, 1);
    journal_count(w, pauses ? FIGURE_WAIT_TICKS : FIGURE_CAME_LAST, pauses ? waited : 1);
    store_release64(&w->mine->ended, seq);           /* E74 release */
}

static inline int barrier(struct tutti_comm *comm, uint32_t site, const tutti_call *call)
{
    struct watch *w = &comm->watch;
    if (load_acquire32(&w->attention) || comm->gate != &barrier_flags || w->verify || (call && call->work))
        return barrier_any(comm, site, call);
    comm->calls[KIND_BARRIER]++;
    const struct claim claim = { .seq = ++comm->seq, .descriptor = stamp_make(KIND_BARRIER, TUTTI_I8, TUTTI_SUM, 0, 0), .committer = -1 };
    uint64_t began = clock_tick();
    uint32_t next, pauses;
    journal_begin(w, claim.seq, claim.descriptor, 0, site, began);
    watch_arrive(w, &claim);
    bool soon = watch_arrived_soon(w, &claim, w->budget.spin_ticks ? STRAIGHT_SPINS : 0, &next, &pauses)
        && !load_relaxed32(&w->slot->devices);       /* relaxed: after E1. Where there are devices there may be more to wait for */
    if (!soon || verdict_complete(w, &claim) != 0)
        return barrier_on(comm, site, call, next, pauses);
    barrier_end(w, claim.seq, began, pauses);
    return 0;
}

int tutti_barrier_at(const char *site, tutti_comm *comm, const tutti_call *call)
{
    enter_clear(call);
    int r = enter(comm);
    if (r < 0)
        return r;
    uint32_t number = comm_site(comm, site);
    if (call)
        r = call->stream ? enter_refuse(comm, KIND_BARRIER, number, "call.stream is for device buffers; a barrier has none")
                         : enter_call(comm, KIND_BARRIER, number, call);
    return enter_leave(comm, r < 0 ? r : barrier(comm, number, call));
}

int tutti_barrier(tutti_comm *comm, const tutti_call *call) { return tutti_barrier_at(NULL, comm, call); }
