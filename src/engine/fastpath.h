/* Job: the fast path of small blocking operations, which cost one transfer of a cache line between
 *      ranks. It fills in no struct coll.
 * Owns: nothing of its own; it writes seq, journal and arrival as operation.c does.
 * Never: sleeps, checks arguments.
 *
 * It is used while the comm is whole, no work is under way, no device is involved, and all
 * peers arrive within a short spin. Else fast_resume goes on with the operation from where
 * this stopped. */
#ifndef TUTTI_ENGINE_FASTPATH_H
#define TUTTI_ENGINE_FASTPATH_H

#include "engine/operation.h"
#include "engine/owed.h"

#include "base/clock.h"
#include "coll/algorithms.h"
#include "coll/eager.h"
#include "os/caller.h"
#include "watch/drive.h"
#include "watch/journal.h"
#include "watch/verdict.h"

enum {
    FAST_SPINS = 256,                  /* looks for each peer, before the state machine looks on */
    BACKOFF = 32,                      /* cycles from arrival to first look, until one is learned */
    BACKOFF_MOST = 1024                /* bytes; a larger payload is looked for at once */
};

/* One operation under way here. Of the claim no more is set than it has.
   It lives in registers, so no function that is not inline gets its address. */
struct fast {
    struct claim claim;
    enum kind kind;
    uint32_t site;
    uint32_t algorithm;                /* its number + 1 */
    size_t bytes;                      /* for the figures */
    struct record *record;
    uint64_t began;                    /* its arrival, in ticks */
    uint32_t next;                     /* first peer that has not been seen to arrive */
    uint32_t pauses;                   /* while looking */
    uint32_t steps;                    /* delay before the first look */
    bool measures;                     /* its time is to be learned */
    bool wakes;                        /* somebody may sleep on this rank's line */
    int result;                        /* of put or take */
    uint64_t folded;                   /* ticks of copies and folds, as far as they were measured */
};

/* Where it has stopped. Made only then, and passed in two registers: stores on the fast path would
   delay the next arrival. */
struct fast_saved { uint32_t site, next, pauses; bool wakes; };

static inline __attribute__((always_inline)) struct fast_saved fast_saved(const struct fast *s)
{
    return (struct fast_saved){ s->site, s->next, s->pauses, s->wakes };
}

/* What distinguishes an operation: a constant, of which the compiler makes straight code.
   NULL: no such step.
   put        writes the payload, before the arrival; negative: it cannot
   meanwhile  does what nobody waits for, while the peers' lines are on their way
   reads      how many bytes of the other's slot take reads, and from where; 0: none
   delay      what the delay before the first look is learned in, where it is by the looks (owed.h)
   take       makes the result, after the last peer's arrival; false: there is more to do */
struct fast_op {
    int  (*put)(struct tutti_comm *comm, const struct fast *s, void *data);
    void (*meanwhile)(void *data);
    size_t (*reads)(const void *data, size_t *from);
    bool (*take)(struct tutti_comm *comm, struct fast *s, void *data);
    uint16_t *(*delay)(struct tutti_comm *comm, const struct fast *s);
};

enum fast_state {
    FAST_DONE,
    FAST_UNPUT,                        /* put has failed, and this rank has not arrived */
    FAST_WAITING,                      /* not all are there */
    FAST_TAKEN                         /* take has said that there is more to do */
};

/* True: no work is under way, the comm is whole, nothing asks for attention, the gate is flags. */
static inline bool fast_may(struct tutti_comm *comm)
{
    return !load_acquire32(&comm->watch.attention)
        && comm->coll.gate == &algorithm_table[ALGORITHM_BARRIER_FLAGS] && !comm->watch.verify
        && (!__builtin_expect(comm->engine.owed.on, 0) || owed_over(comm));
}

/* The comm's next operation. count: as in the fingerprint `stamp`. algorithm: its number + 1. */
static inline __attribute__((always_inline))
void fast_begin(const struct tutti_comm *comm, struct fast *s, enum kind kind, uint64_t stamp,
                uint64_t count, size_t bytes, uint32_t site, uint32_t algorithm)
{
    s->claim.seq = comm->seq + 1;
    s->claim.descriptor = stamp;
    s->claim.count = count;
    s->kind = kind;
    s->bytes = bytes;
    s->site = site;
    s->algorithm = algorithm;
    s->folded = 0;
}

/* Arrives, then counts the operation and records it. That costs no time here: the peers' lines are
 * still on their way. leaves: it waits for none of them (owed.h). */
static inline __attribute__((always_inline))
void fast_arrive_by(struct tutti_comm *comm, struct fast *s, bool leaves)
{
    struct watch *w = &comm->watch;
    s->next = s->pauses = 0;
    s->wakes = leaves ? watch_say_soon(w, &s->claim) : watch_say(w, &s->claim);
    comm->seq = s->claim.seq;
    comm->engine.calls[s->kind]++;
    s->began = clock_tick();
    const struct journal_entry e = {
        .seq = s->claim.seq, .descriptor = s->claim.descriptor, .count = s->claim.count,
        .how = record_how(s->site, s->algorithm), .tick = s->began, .arrived = true
    };
    s->record = journal_enter(w, &e);
    journal_count(w, FIGURE_OPERATIONS, 1);
    if (s->bytes)
        journal_count(w, FIGURE_BYTES, s->bytes);
}

static inline __attribute__((always_inline))
void fast_arrive(struct tutti_comm *comm, struct fast *s)
{
    fast_arrive_by(comm, s, false);
}

/* Looks for the first peer, after a delay that is learned: one for barriers, one for small
   payloads. A large payload takes longer than a transfer of a line, so it has no delay. Fetches
   what it has put into its slot, too (coll/eager.h); now and then it does not, and the look is to
   be measured. */
static inline __attribute__((always_inline))
uint64_t fast_look(struct tutti_comm *comm, const struct fast_op *op, struct fast *s,
                   const void *data)
{
    uint32_t steps = 0;
    if (op->delay)
        steps = *op->delay(comm, s) / OWED_STEP;
    else if (s->kind == KIND_BARRIER)
        steps = backoff_steps(&comm->engine.backoff[0], BACKOFF);
    else if (s->bytes <= BACKOFF_MOST)
        steps = backoff_steps(&comm->engine.backoff[1], BACKOFF);
    size_t from = 0, bytes = op->reads ? op->reads(data, &from) : 0;
    bool fetches = bytes && bytes <= PREFETCH_READ;
    s->measures = fetches && backoff_due(comm->engine.calls[s->kind] + BACKOFF_BLOCK / 2);
    const char *slot = fetches && !s->measures ? eager_peer_slot(comm, s->claim.seq) : NULL;
    if (slot)
        steps += PREFETCH_DELAY(comm->coll.prefetch.way);
    s->steps = steps;
    size_t later = cpu_later(steps);
    uint64_t first = watch_first(&comm->watch, &s->claim, later);
    for (size_t i = from / CPU_LINE * CPU_LINE; slot && i < from + bytes; i += CPU_LINE)
        cpu_fetch(slot + later + i);
    return first;
}

/* True: all are there, nobody has to be woken, there is no verdict. first: what fast_look gave. */
static inline __attribute__((always_inline)) bool fast_met(struct tutti_comm *comm, struct fast *s,
                                                           uint64_t first)
{
    struct watch *w = &comm->watch;
    return !s->wakes && watch_arrived_soon(w, &s->claim, first, FAST_SPINS, &s->next, &s->pauses)
        /* relaxed: after E1. Where there are devices there may be more to wait for */
        && !load_relaxed32(&w->slot->devices)
        && verdict_none(w);
}

/* From the look: for the next prefetch. */
static inline __attribute__((always_inline))
void fast_learn(struct tutti_comm *comm, const struct fast *s, bool met)
{
    bool soon = met && s->pauses <= PREFETCH_SOON;
    eager_met(comm, soon);
    if (s->measures && soon) {
        uint64_t ticks = clock_tick_behind() - s->began;
        eager_measured(comm, ticks > s->steps ? ticks - s->steps : 0);
    }
}

static inline void fast_waited(struct watch *w, uint64_t ticks)
{
    journal_count(w, FIGURE_WAITS, 1);
    journal_count(w, FIGURE_WAIT_TICKS, ticks);
}

/* The rest of what operation_end does for an operation that went well. It is short, since the next
 * arrival comes after it. */
static inline __attribute__((always_inline))
void fast_end(struct tutti_comm *comm, const struct fast *s)
{
    struct watch *w = &comm->watch;
    uint64_t waited = (uint64_t)s->pauses * w->pause_ticks;
    journal_well(s->record, waited + s->folded);
    PROBE3(op_end, w->name, s->claim.seq, 0);
    if (s->pauses)
        fast_waited(w, waited);
    if (s->folded)
        journal_count(w, FIGURE_FOLD_TICKS, s->folded);
    store_release64(&w->mine->ended, s->claim.seq);                  /* E74 release */
    if (backoff_due(comm->engine.calls[s->kind]))
        operation_tune(comm, s->kind, s->began);
}

/* From the payload to the end. If it does not come there, the caller goes on with fast_resume. */
static inline __attribute__((always_inline))
enum fast_state fast_run(struct tutti_comm *comm, const struct fast_op *op, struct fast *s,
                         void *data)
{
    if (op->put && (s->result = op->put(comm, s, data)) < 0)
        return FAST_UNPUT;
    fast_arrive(comm, s);
    if (op->meanwhile)
        op->meanwhile(data);
    bool met = fast_met(comm, s, fast_look(comm, op, s, data));
    if (op->reads)
        fast_learn(comm, s, met);
    if (op->delay && met && !s->measures)
        owed_learn(op->delay(comm, s), s->pauses);
    if (!met)
        return FAST_WAITING;
    eager_own(comm, s->claim.seq);
    if (op->take && !op->take(comm, s, data))
        return FAST_TAKEN;
    fast_end(comm, s);
    return FAST_DONE;
}

/* The comm's last operation has arrived here: fills in c as of an operation of the
 * state machine. */
void fast_adopt(struct tutti_comm *comm, struct coll *c, struct fast_saved s, enum kind kind,
                int64_t timeout_ns);

/* The comm's last operation has arrived here, and goes on to its end in the state machine.
   c says what it is, as for run_collective. */
int fast_resume(struct tutti_comm *comm, struct coll *c, struct fast_saved s, enum kind kind,
                int64_t timeout_ns);

#endif
