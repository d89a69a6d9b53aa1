/* Job: the fast path of small blocking operations, which cost one transfer of a cache line between ranks. It fills in no struct coll.
 * Owns: nothing of its own; seq, journal and arrival as run.c does.
 * Never: sleeps, checks arguments.
 *
 * It is used while the comm is whole, no work is under way, no device is involved, and all peers arrive within a short spin. Else run.c
 * resumes the operation from where this stopped. */
#ifndef TUTTI_ENGINE_FASTPATH_H
#define TUTTI_ENGINE_FASTPATH_H

#include "engine/operation.h"

#include "base/clock.h"
#include "coll/algorithms.h"
#include "os/caller.h"
#include "watch/drive.h"
#include "watch/journal.h"
#include "watch/verdict.h"

/* How long the fast path waits for each peer before the state machine does. And from its arrival to its first look, in cycles, as long as
   base/backoff.h has not found out better; what takes longer than a line's way is looked for at once. */
enum { FAST_SPINS = 256, BACKOFF = 32, BACKOFF_MOST = 1024 };

/* wakes: somebody may sleep. alone: its pause is learned from whether it looked too early. Of the claim no more is set than it has. */
struct fast { struct claim claim; struct record *record; uint64_t began; uint32_t site, next, pauses; bool wakes, alone; };

/* Where it has left off, for the rest: two registers, made only then. What the fast path stores for that, each time, the next arrival waits for:
   a dozen stores were a tenth of a barrier. */
struct fast_left { uint64_t began; uint32_t site; uint16_t next; uint16_t pauses : 15, wakes : 1; };
enum { LEFT_PAUSES = (1 << 15) - 1 };                /* more are not counted */
_Static_assert(RANKS_MAX < 1 << 16 && sizeof(struct fast_left) == 16, "in two registers");

static inline __attribute__((always_inline)) struct fast_left fast_left(const struct fast *s)
{
    uint32_t pauses = s->pauses < LEFT_PAUSES ? s->pauses : LEFT_PAUSES;
    return (struct fast_left){ s->began, s->site, (uint16_t)s->next, pauses & LEFT_PAUSES, s->wakes };
}

/* Nothing is out of the common: no work under way, nothing broken or odd, the gate is that of flags. */
static inline bool fast_may(const struct tutti_comm *comm)
{
    return !load_acquire32(&comm->watch.attention) && comm->coll.gate == &algorithm_table[ALGORITHM_BARRIER_FLAGS] && !comm->watch.verify;
}

/* The next operation of this comm; its payload is to be written after this, and before fast_arrive. `count` fits the stamp. */
static inline __attribute__((always_inline)) void fast_begin(const struct tutti_comm *comm, struct fast *s, uint64_t stamp, uint64_t count,
                                                             uint32_t site)
{
    s->claim.seq = comm->seq + 1;
    s->claim.descriptor = stamp;
    s->claim.count = count;
    s->site = site;
}

/* Arrives, and counts it. What nobody waits for is done after that, here and before fast_look, while the peers' lines cannot be there yet. */
static inline __attribute__((always_inline)) void fast_arrive(struct tutti_comm *comm, struct fast *s, enum kind kind, size_t bytes)
{
    struct watch *w = &comm->watch;
    s->next = s->pauses = 0;
    s->wakes = watch_say(w, &s->claim);
    comm->seq = s->claim.seq;
    comm->engine.calls[kind]++;
    s->began = clock_tick();
    s->record = journal_begin(w, s->claim.seq, s->claim.descriptor, s->claim.count, s->site, s->began);
    journal_count(w, FIGURE_OPERATIONS, 1);
    journal_count(w, FIGURE_CAME_LAST, 1);           /* as it seems */
    if (bytes)
        journal_count(w, FIGURE_BYTES, bytes);
    s->alone = false;
}

/* Looks for the first peer, `steps` after the arrival; or as `backoff` says, where there is one. */
static inline __attribute__((always_inline)) uint64_t fast_look(struct tutti_comm *comm, struct fast *s, uint32_t steps, struct backoff *backoff)
{
    if (backoff)
        steps = backoff_pause(backoff, s->began, BACKOFF, &s->alone);
    return watch_first(&comm->watch, &s->claim, steps);
}

/* For what carries so much. */
static inline struct backoff *fast_backoff(struct tutti_comm *comm, size_t bytes) { return bytes <= BACKOFF_MOST ? &comm->engine.backoff[1] : NULL; }

/* True: all are there, nobody has to be woken, and no verdict stands against it. first: what fast_look gave. */
static inline __attribute__((always_inline)) bool fast_met(struct tutti_comm *comm, struct fast *s, uint64_t first)
{
    struct watch *w = &comm->watch;
    return !s->wakes && watch_arrived_soon(w, &s->claim, first, FAST_SPINS, &s->next, &s->pauses)
        /* relaxed: after E1. Where there are devices there may be more to wait for */
        && !load_relaxed32(&w->slot->devices)
        && verdict_none(w);
}

/* The figures have it as come last. */
static inline void fast_waited(struct watch *w, uint64_t ticks)
{
    journal_count(w, FIGURE_CAME_LAST, (uint64_t)-1);
    journal_count(w, FIGURE_WAIT_TICKS, ticks);
}

/* What operation_end does for an operation that went well, as far as it is not done yet: as little as can be, for all of it stands before the next arrival. */
static inline __attribute__((always_inline)) int fast_end(struct tutti_comm *comm, const struct fast *s, enum kind kind)
{
    struct watch *w = &comm->watch;
    uint64_t waited = (uint64_t)s->pauses * w->pause_ticks;
    journal_well(s->record, s->began + waited);
    if (s->pauses)
        fast_waited(w, waited);
    store_release64(&w->mine->ended, s->claim.seq);                  /* E74 release */
    if (s->alone)
        later_learn(&comm->engine.backoff[kind != KIND_BARRIER].later, BACKOFF, s->pauses > 0);
    return backoff_due(comm->engine.calls[kind]) ? operation_tune(comm, kind, s->began) : 0;
}

/* It has arrived, and goes on as an operation like any other: c says what it is, as for run_collective. */
static inline void fast_off(struct tutti_comm *comm, struct coll *c, struct fast_left left, enum kind kind, int64_t timeout_ns)
{
    if (left.wakes)
        watch_wake(&comm->watch, comm->seq);
    comm->seq--;                                     /* operation_number gives it the same number again */
    operation_number(comm, c, kind, left.site, timeout_ns);
    journal_count(&comm->watch, FIGURE_OPERATIONS, (uint64_t)-1);   /* operation_end counts it, and its bytes, and whether it came last */
    journal_count(&comm->watch, FIGURE_CAME_LAST, (uint64_t)-1);
    journal_count(&comm->watch, FIGURE_BYTES, -(uint64_t)c->bytes);
    c->op.keep = false;
    c->op.next = left.next;
    c->op.pauses = left.pauses;
    c->phase = GATE_WAIT;
}

/* The same to its end, for not all are there. */
static inline int fast_on(struct tutti_comm *comm, struct coll *c, struct fast_left left, enum kind kind, int64_t timeout_ns)
{
    CALLER_KEPT;
    fast_off(comm, c, left, kind, timeout_ns);
    return operation_end(c, drive_to_end(&c->op));
}

#endif
