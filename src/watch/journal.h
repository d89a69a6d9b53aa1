/* Job: the flight recorder: what this rank is doing on a comm, and what it did last.
 * Owns: member.head, member.journal, member.figures of this rank.
 * Never: anything a peer waits for. Readers may see a record being overwritten; they show what they
 *        see and decide nothing by it. */
#ifndef TUTTI_WATCH_JOURNAL_H
#define TUTTI_WATCH_JOURNAL_H

#include "base/clock.h"
#include "watch/watch.h"

enum figure {
    FIGURE_OPERATIONS, FIGURE_BYTES, FIGURE_WAIT_TICKS, FIGURE_FOLD_TICKS,
    FIGURE_CAME_LAST, FIGURE_SLEEPS
};

static inline struct record *journal_hand(const struct member *m)
{
    /* relaxed: a hint for people */
    return (struct record *)&m->journal[load_relaxed64(&m->head) % JOURNAL_RECORDS];
}

/* The record of what begins. */
static inline struct record *journal_begin(struct watch *w, uint64_t seq, uint64_t descriptor,
                                           uint64_t count, uint32_t site, uint64_t tick)
{
    struct member *mine = w->mine;
    uint64_t head = load_relaxed64(&mine->head) + 1;                 /* relaxed: our own word */
    struct record *r = &mine->journal[head % JOURNAL_RECORDS];
    /* relaxed: all of a record is a hint for people, and the owner alone writes it */
    store_relaxed64(&r->ended, 0);
    store_relaxed64(&r->seq, seq);
    store_relaxed64(&r->descriptor, descriptor);
    /* relaxed: as above */
    store_relaxed64(&r->count, count);
    store_relaxed64(&r->began, tick);
    store_relaxed32(&r->site, site);
    /* relaxed: as above */
    /* about and tag are a send's or receive's, who sets them after this */
    store_relaxed32(&r->result, 0);
    store_release64(&mine->head, head);
    return r;
}

/* It went well. */
static inline void journal_well(struct record *r, uint64_t tick)
{
    store_relaxed64(&r->ended, tick);                                /* relaxed: as above */
}

static inline void journal_end(struct watch *w, int result, uint64_t tick)
{
    struct record *r = journal_hand(w->mine);
    store_relaxed32(&r->result, (uint32_t)result);                   /* relaxed: as above */
    store_relaxed64(&r->ended, tick);                                /* relaxed: as above */
}

static inline void journal_count(struct watch *w, enum figure f, uint64_t more)
{
    shared64 *word = &w->mine->figures[f];
    /* relaxed: our own counter, a figure for people */
    store_relaxed64(word, load_relaxed64(word) + more);
}

#endif
