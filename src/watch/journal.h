/* Job: the flight recorder: what this rank is doing on a comm, and what it did last.
 * Owns: member.head, member.journal, member.figures of this rank.
 * Never: anything a peer waits for.
 *
 * E94 journal: the owner stores all fields of record k, then head = k (release). Each of these
 *     stores is a release, so whoever reads a field of record k + 1 (acquire) reads head >= k
 *     afterwards. A reader loads head (acquire), then the fields (acquire), then head again:
 *     records up to the first, from JOURNAL_RECORDS - 2 before the second, are whole. The end and
 *     the arrival come later, each in one word. A rank that is killed in the middle of a record has
 *     not raised head for it. */
#ifndef TUTTI_WATCH_JOURNAL_H
#define TUTTI_WATCH_JOURNAL_H

#include "base/clock.h"
#include "base/probe.h"
#include "watch/watch.h"

enum figure {
    FIGURE_OPERATIONS, FIGURE_BYTES, FIGURE_WAIT_TICKS, FIGURE_FOLD_TICKS,
    FIGURE_WAITS, FIGURE_SLEEPS
};

static inline struct record *journal_hand(const struct member *m)
{
    /* E94 acquire */
    return (struct record *)&m->journal[load_acquire64(&m->head) % JOURNAL_RECORDS];
}

/* ---- the fields that are several in one word ---- */

enum { ENDED_ERROR = 255, ENDED_EXACT = 256, ENDED_SHIFT = 9 };

/* After so many ticks. */
static inline uint64_t record_ended(uint64_t ticks, bool exact, int result)
{
    unsigned error = result >= 0 ? 0 : result > -ENDED_ERROR ? (unsigned)-result : ENDED_ERROR;
    return (ticks + 1) << ENDED_SHIFT | (exact ? ENDED_EXACT : 0) | error;
}
static inline uint64_t record_ended_ticks(uint64_t ended) { return (ended >> ENDED_SHIFT) - 1; }
static inline int record_ended_result(uint64_t ended) { return -(int)(ended & ENDED_ERROR); }

/* The tick of its end, or of its beginning if it has not ended. */
static inline uint64_t record_last_tick(uint64_t began, uint64_t ended)
{
    return ended ? began + record_ended_ticks(ended) : began;
}

/* algorithm: its number (coll/algorithms.h) + 1; 0: none */
static inline uint64_t record_how(uint32_t site, uint32_t algorithm)
{
    return (uint64_t)algorithm << 32 | site;
}
static inline uint32_t record_site(const struct record *r)
{
    return (uint32_t)load_relaxed64(&r->how);              /* relaxed: after journal_hand */
}

/* ---- the owner's side ---- */

/* What is recorded of an operation. about, tag: as in struct record. */
struct journal_entry {
    uint64_t seq, descriptor, count, how, tick;
    bool arrived;                     /* at tick */
    bool letter;                      /* it has about and tag */
    uint32_t about, tag;
};

static inline __attribute__((always_inline))
struct record *journal_enter(struct watch *w, const struct journal_entry *e)
{
    struct member *mine = w->mine;
    uint64_t head = load_relaxed64(&mine->head) + 1;                 /* relaxed: our own word */
    struct record *r = &mine->journal[head % JOURNAL_RECORDS];
    store_release64(&r->ended, 0);                                   /* E94 release */
    store_release64(&r->seq, e->seq);                                /* E94 release */
    store_release64(&r->descriptor, e->descriptor);                  /* E94 release */
    store_release64(&r->count, e->count);                            /* E94 release */
    store_release64(&r->began, e->tick);                             /* E94 release */
    store_release64(&r->arrived, e->arrived);                        /* E94 release */
    store_release64(&r->how, e->how);                                /* E94 release */
    if (e->letter) {
        store_release32(&r->about, e->about);                        /* E94 release */
        store_release32(&r->tag, e->tag);                            /* E94 release */
    }
    store_release64(&mine->head, head);                              /* E94 release */
    PROBE4(op_begin, w->name, e->seq, kind_table[fingerprint_kind(e->descriptor)].name, e->count);
    return r;
}

/* A call without algorithm, and without arrival so far. */
static inline void journal_begin(struct watch *w, uint64_t seq, uint64_t descriptor,
                                 uint64_t count, uint32_t site, uint64_t tick)
{
    const struct journal_entry e = {
        .seq = seq, .descriptor = descriptor, .count = count, .how = record_how(site, 0),
        .tick = tick
    };
    journal_enter(w, &e);
}

/* This rank arrives at the operation in hand. Its tick comes before sleepers are woken: these may
 * take the CPU. */
static inline void journal_arrive(struct watch *w, const struct claim *c)
{
    struct record *r = journal_hand(w->mine);
    bool wakes = watch_say(w, c);
    uint64_t tick = clock_tick(), began = load_relaxed64(&r->began);     /* relaxed: our own word */
    /* E94 release */
    store_release64(&r->arrived, tick > began ? tick - began + 1 : 1);
    if (wakes)
        watch_wake(w, c->seq);
}

/* It went well. ticks: since it began, as estimated. */
static inline void journal_well(struct record *r, uint64_t ticks)
{
    store_release64(&r->ended, record_ended(ticks, false, 0));       /* E94 release */
}

static inline void journal_end_by(struct watch *w, int result, uint64_t tick, bool exact)
{
    struct record *r = journal_hand(w->mine);
    uint64_t began = load_relaxed64(&r->began);                      /* relaxed: our own word */
    /* E94 release */
    store_release64(&r->ended, record_ended(tick > began ? tick - began : 0, exact, result));
    PROBE3(op_end, w->name, load_relaxed64(&r->seq), result);        /* relaxed: our own word */
}

static inline void journal_end(struct watch *w, int result, uint64_t tick)
{
    journal_end_by(w, result, tick, true);
}

static inline void journal_count(struct watch *w, enum figure f, uint64_t more)
{
    shared64 *word = &w->mine->figures[f];
    /* relaxed: our own counter, a figure for people */
    store_relaxed64(word, load_relaxed64(word) + more);
}

#endif
