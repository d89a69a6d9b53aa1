/* The journals are read comm by comm (watch/history), and put in order of time. Cost: 100 ns an
 * operation, of which each rank has 126 at most in each comm. */
#include "cli/trace.h"

#include "fold/fold.h"
#include "watch/lateness.h"
#include "watch/phrase.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int trace_order(const void *left, const void *right)
{
    const struct trace_op *a = left, *b = right;
    if (a->op->began_ns != b->op->began_ns)
        return a->op->began_ns < b->op->began_ns ? -1 : 1;
    return a->op < b->op ? -1 : a->op > b->op;
}

static int trace_read(struct trace *t, const struct held_job *held)
{
    const struct arena *arena = &held->copy.arena;
    t->comm = calloc(held->copy.comms + 1, sizeof *t->comm);
    if (!t->comm)
        return -ENOMEM;
    for (uint32_t i = 0; i < held->copy.comms; i++) {
        int error = history_read(&t->comm[t->comms], arena, i, held->now);
        if (error == -ENOMEM)
            return error;
        t->comms += error == 0;
    }
    return 0;
}

static int trace_sort(struct trace *t)
{
    size_t n = 0;
    for (uint32_t i = 0; i < t->comms; i++)
        n += t->comm[i].n;
    t->op = calloc(n + 1, sizeof *t->op);
    if (!t->op)
        return -ENOMEM;
    for (uint32_t i = 0; i < t->comms; i++)
        for (uint32_t p = 0; p < t->comm[i].size; p++) {
            const struct history_rank *rank = &t->comm[i].rank[p];
            for (uint32_t k = 0; k < rank->n && rank->rank != RANK_NOBODY; k++)
                t->op[t->n++] = (struct trace_op){ &t->comm[i], p, &rank->op[k] };
        }
    qsort(t->op, t->n, sizeof *t->op, trace_order);
    t->begin_ns = t->n ? t->op[0].op->began_ns : t->held->now.ns;
    return 0;
}

int trace_gather(struct trace *t, const struct held_job *held)
{
    *t = (struct trace){ .held = held, .left_out = held->copy.left_out };
    int error = rank_states_fill(&t->states, &held->copy, held->process, held->now, UINT64_MAX);
    if (!error)
        error = trace_read(t, held);
    if (!error)
        error = trace_sort(t);
    if (error)
        trace_drop(t);
    return error;
}

void trace_drop(struct trace *t)
{
    for (uint32_t i = 0; i < t->comms; i++)
        history_drop(&t->comm[i]);
    free(t->comm);
    free(t->op);
    rank_states_drop(&t->states);
    *t = (struct trace){ 0 };
}

/* ---- one operation of all ranks ---- */

bool trace_alike(const struct history_op *a, const struct history_op *b)
{
    return a->descriptor == b->descriptor
        && (!fingerprint_hashed(a->descriptor) || a->count == b->count);
}

void trace_numbers(const struct history *h, uint64_t *from, uint64_t *to)
{
    *from = UINT64_MAX;
    *to = 0;
    for (uint32_t p = 0; p < h->size; p++)
        for (uint32_t k = 0; k < h->rank[p].n; k++) {
            uint64_t number = h->rank[p].op[k].number;
            *from = number && number < *from ? number : *from;
            *to = number > *to ? number : *to;
        }
}

/* The oldest number that this rank's journal is sure to have. */
static uint64_t trace_oldest(const struct history_rank *rank)
{
    for (uint32_t k = 0; rank->begun > rank->n && k < rank->n; k++)
        if (rank->op[k].number)
            return rank->op[k].number;
    return rank->begun > rank->n ? UINT64_MAX : 0;
}

/* Of which party is at[p]: the number of those with other calls among the ranks before it. */
static bool trace_new_party(const struct trace_meeting *m, uint32_t p)
{
    for (uint32_t q = 0; q < p; q++)
        if (m->at[q] && trace_alike(m->at[q], m->at[p]))
            return false;
    return true;
}

static void trace_late(struct trace_meeting *m, const struct history *h)
{
    struct late_once once;
    uint64_t others[RANKS_MAX];
    if (m->last < 0)
        return;
    m->waited = lateness_measure(&once, h, m->at[m->last], others);
    m->late_ns = once.late_ns;
}

bool trace_meet(struct trace_meeting *m, const struct history *h, uint64_t number,
                const struct history_op **at)
{
    uint32_t here = 0;
    *m = (struct trace_meeting){ .number = number, .at = at, .last = -1, .begin_ns = UINT64_MAX };
    for (uint32_t p = 0; p < h->size; p++) {
        const struct history_op *op = at[p] = history_find(&h->rank[p], number);
        if (!op) {
            m->early |= number < trace_oldest(&h->rank[p]);
            continue;
        }
        here++;
        m->came += op->arrived_ns != 0;
        m->ended += op->ended_ns != 0;
        m->failed += op->result < 0;
        m->parties += trace_new_party(m, p);
        m->begin_ns = op->began_ns < m->begin_ns ? op->began_ns : m->begin_ns;
        m->end_ns = op->ended_ns > m->end_ns ? op->ended_ns : m->end_ns;
    }
    if (here != m->ended)
        m->end_ns = 0;
    bool all = here == h->size && m->came == h->size;
    m->last = all && h->size > 1 ? at[0]->last : -1;
    if (m->last >= (int)h->size)
        m->last = -1;
    trace_late(m, h);
    return here > 0;
}

int trace_walk_begin(struct trace_walk *w, const struct trace *t)
{
    *w = (struct trace_walk){ .trace = t, .at = calloc(RANKS_MAX, sizeof *w->at),
                              .seen = calloc(t->comms + 1, sizeof *w->seen) };
    int error = w->at && w->seen ? 0 : -ENOMEM;
    for (uint32_t i = 0; i < t->comms && !error; i++) {
        w->seen[i] = calloc(t->comm[i].n + 1, 1);
        error = w->seen[i] ? 0 : -ENOMEM;
    }
    if (error)
        trace_walk_end(w);
    return error;
}

bool trace_walk_first(struct trace_walk *w, const struct trace_op *o, struct trace_meeting *m)
{
    uint8_t *seen = w->seen[o->comm - w->trace->comm];
    if (seen[o->op - o->comm->at] || !trace_meet(m, o->comm, o->op->number, w->at))
        return false;
    for (uint32_t p = 0; p < o->comm->size; p++)
        if (m->at[p])
            seen[m->at[p] - o->comm->at] = 1;
    seen[o->op - o->comm->at] = 1;
    return true;
}

void trace_walk_end(struct trace_walk *w)
{
    for (uint32_t i = 0; w->seen && i < w->trace->comms; i++)
        free(w->seen[i]);
    free(w->seen);
    free(w->at);
}

/* ---- words ---- */

void trace_add_comm(struct text *t, const struct history *h)
{
    if (h->parent)
        text_add(t, "comm %llu", (unsigned long long)h->birth);
    else
        text_add(t, "world");
}

void trace_add_name(struct text *t, const struct history_op *op)
{
    const struct op_record record = {
        .became = op->became, .number = op->number, .descriptor = op->descriptor,
        .count = op->count, .about = op->about, .tag = op->tag
    };
    phrase_call(t, &record);
}

void trace_add_site(struct text *t, const struct trace *trace, const struct history_op *op)
{
    text_add_foreign(t, arena_site_text(&trace->held->copy.arena, op->site), SITE_TEXT);
}

uint64_t trace_end(const struct trace *t, const struct history_op *op)
{
    uint64_t end = op->ended_ns ? op->ended_ns : t->held->now.ns;
    return end > op->began_ns ? end : op->began_ns;
}
