/* A ring of records is copied between two looks at its head, so that what was written over
 * meanwhile is known and left out (E94). Who came last is computed here, from what each rank wrote
 * of itself: a rank that has come cannot tell, without a transfer of a line for each peer, whether
 * others had waited for it.
 *
 * All ranks have come before any of them ends an operation well. So an arrival is no later than the
 * others' ends that a clock was read for, and than their next call; where it stands later, its rank
 * lost the CPU between the arrival and the clock. An end is no earlier than the last arrival.
 *
 * Cost: 30 ns a record. */
#include "watch/history.h"

#include "watch/journal.h"

#include <errno.h>
#include <stdlib.h>

/* ---- one rank ---- */

/* What is kept of the record's bits: `arrived` and `ended` are as in it. */
struct history_raw {
    uint64_t seq, descriptor, count, began, arrived, ended, how;
    uint32_t about, tag;
};

static void history_copy(struct history_raw *raw, const struct record *r)
{
    /* the end first: a record that has ended has arrived before */
    raw->ended = load_acquire64(&r->ended);                          /* E94 acquire */
    raw->arrived = load_acquire64(&r->arrived);                      /* E94 acquire */
    raw->seq = load_acquire64(&r->seq);                              /* E94 acquire */
    raw->descriptor = load_acquire64(&r->descriptor);                /* E94 acquire */
    raw->count = load_acquire64(&r->count);                          /* E94 acquire */
    raw->began = load_acquire64(&r->began);                          /* E94 acquire */
    raw->how = load_acquire64(&r->how);                              /* E94 acquire */
    raw->about = load_acquire32(&r->about);                          /* E94 acquire */
    raw->tag = load_acquire32(&r->tag);                              /* E94 acquire */
}

struct history_clock { struct clock_point origin, now; uint64_t first_seq; };

static uint64_t history_ns(const struct history_clock *c, uint64_t tick)
{
    uint64_t ns = clock_tick_ns(tick, c->origin, c->now);
    return ns < c->now.ns ? ns : c->now.ns;
}

/* So many ticks after another; of a sum that is too large, that other. */
static uint64_t history_after(const struct history_clock *c, uint64_t tick, uint64_t ticks)
{
    return history_ns(c, tick + ticks < tick ? tick : tick + ticks);
}

static bool history_op_of(struct history_op *op, const struct history_raw *raw,
                          const struct history_clock *c)
{
    enum kind kind = fingerprint_kind(raw->descriptor);
    if (kind <= KIND_NONE || kind >= KIND_COUNT)
        return false;
    bool numbered = raw->seq > c->first_seq && raw->seq != UINT64_MAX;
    int result = raw->ended ? record_ended_result(raw->ended) : 0;
    *op = (struct history_op){
        .became = raw->seq, .exact = raw->ended & ENDED_EXACT,
        .result = result == -ENDED_ERROR ? -ENODATA : result, .last = -1,
        .number = numbered ? raw->seq - c->first_seq : 0,
        .descriptor = raw->descriptor, .count = raw->count,
        .began_ns = history_ns(c, raw->began),
        .ended_ns = raw->ended ? history_after(c, raw->began, record_ended_ticks(raw->ended)) : 0,
        .arrived_ns = raw->arrived && numbered ? history_after(c, raw->began, raw->arrived - 1) : 0,
        .site = (uint32_t)raw->how, .algorithm = (uint32_t)(raw->how >> 32),
        .about = raw->about, .tag = raw->tag
    };
    return true;
}

/* Appends what is whole of m's journal to op. */
static void history_member(struct history_rank *rank, struct history_op *op, const struct member *m,
                           const struct history_clock *c)
{
    struct history_raw raw[JOURNAL_RECORDS];
    uint64_t until = load_acquire64(&m->head);                       /* E94 acquire */
    uint64_t some = until < JOURNAL_RECORDS - 1 ? until : JOURNAL_RECORDS - 1;
    for (uint64_t back = some; back-- > 0;)
        history_copy(&raw[back], &m->journal[(until - back) % JOURNAL_RECORDS]);
    /* relaxed: after the acquires of the fields, E94 */
    uint64_t head = load_relaxed64(&m->head);
    rank->op = op;
    rank->begun = until;
    for (uint64_t back = some; back-- > 0;)
        if (head - until + back <= JOURNAL_RECORDS - 2)
            rank->n += history_op_of(&op[rank->n], &raw[back], c);
}

/* ---- the comm ---- */

const struct history_op *history_find(const struct history_rank *rank, uint64_t number)
{
    for (uint32_t i = rank->n; number && i-- > 0;)
        if (rank->op[i].number == number)
            return &rank->op[i];
    return NULL;
}

/* The ranks' next operations in the order of their numbers. */
struct history_walk { uint32_t *next; struct history_op **at; };

/* The next operation with a number of rank p, or NULL. */
static struct history_op *history_next(const struct history *h, struct history_walk *walk,
                                       uint32_t p)
{
    const struct history_rank *rank = &h->rank[p];
    while (walk->next[p] < rank->n && !rank->op[walk->next[p]].number)
        walk->next[p]++;
    return walk->next[p] < rank->n ? &rank->op[walk->next[p]] : NULL;
}

/* The lowest number that is left; at[p]: as rank p has it, NULL: it has not. 0: none is left. */
static uint64_t history_step(const struct history *h, struct history_walk *walk)
{
    uint64_t number = 0;
    for (uint32_t p = 0; p < h->size; p++) {
        const struct history_op *op = history_next(h, walk, p);
        if (op && (!number || op->number < number))
            number = op->number;
    }
    for (uint32_t p = 0; number && p < h->size; p++) {
        struct history_op *op = history_next(h, walk, p);
        bool has = op && op->number == number;
        walk->at[p] = has ? op : NULL;
        walk->next[p] += has;
    }
    return number;
}

/* No rank arrived later than this. */
static uint64_t history_over(const struct history *h, struct history_op *const *at)
{
    uint64_t over = UINT64_MAX;
    for (uint32_t p = 0; p < h->size; p++) {
        const struct history_op *op = at[p];
        if (!op || !op->ended_ns || op->result < 0)
            continue;
        if (op->exact && op->ended_ns < over)
            over = op->ended_ns;
        if (op + 1 < h->rank[p].op + h->rank[p].n && op[1].began_ns < over)
            over = op[1].began_ns;
    }
    return over;
}

/* When the last rank came to the operation `at`, and which one, if all have come. */
static void history_meeting(const struct history *h, struct history_op **at)
{
    uint64_t over = history_over(h, at), last_ns = 0;
    bool all = true;
    int last = -1;
    for (uint32_t p = 0; p < h->size; p++) {
        if (!at[p] || !at[p]->arrived_ns) {
            all = false;
            continue;
        }
        if (at[p]->arrived_ns > over)
            at[p]->arrived_ns = over;
        if (at[p]->arrived_ns > last_ns) {
            last_ns = at[p]->arrived_ns;
            last = (int)p;
        }
    }
    for (uint32_t p = 0; all && p < h->size; p++) {
        struct history_op *op = at[p];
        op->last = last;
        op->last_ns = last_ns;
        if (op->ended_ns && op->result == 0 && op->ended_ns < last_ns)
            op->ended_ns = last_ns;
    }
}

static int history_meetings(const struct history *h)
{
    struct history_walk walk = { calloc(h->size, sizeof *walk.next),
                                 calloc(h->size, sizeof *walk.at) };
    int error = walk.next && walk.at ? 0 : -ENOMEM;
    while (!error && history_step(h, &walk))
        history_meeting(h, walk.at);
    free(walk.next);
    free(walk.at);
    return error;
}

int history_read(struct history *h, const struct arena *arena, uint32_t index,
                 struct clock_point now)
{
    const struct arena_header *header = arena->header;
    const struct history_clock clock = { header->origin, now, header->first_seq };
    struct slot *slot = arena_slot(arena, index);
    *h = (struct history){ .slot = index };
    /* relaxed: who reads its own comm knows it, and of any other nothing is believed */
    if (!slot || load_relaxed32(&slot->state) != SLOT_USED || !arena_slot_size(arena, slot))
        return -ENOENT;
    h->size = arena_slot_size(arena, slot);
    h->birth = slot->birth;
    h->parent = slot->parent;
    h->rank = calloc(h->size, sizeof *h->rank);
    h->at = calloc((size_t)h->size * JOURNAL_RECORDS, sizeof *h->at);
    int error = h->rank && h->at ? 0 : -ENOMEM;
    for (uint32_t p = 0; !error && p < h->size; p++) {
        h->rank[p].rank = arena_slot_rank(arena, slot, p);
        history_member(&h->rank[p], &h->at[h->n], arena_member(slot, p), &clock);
        h->n += h->rank[p].n;
    }
    if (!error)
        error = history_meetings(h);
    if (error)
        history_drop(h);
    return error;
}

void history_drop(struct history *h)
{
    free(h->rank);
    free(h->at);
    *h = (struct history){ 0 };
}
