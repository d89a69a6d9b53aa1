/* A line an operation, of all ranks together where it is one that they share, in order of time. */
#include "cli/ps.h"
#include "cli/trace.h"

#include "base/error.h"
#include "coll/algorithms.h"

#include <string.h>

enum { LINE_ROOM = 2048 };

static void add_time(struct text *t, const struct trace *trace, uint64_t ns)
{
    uint64_t since = ns > trace->begin_ns ? ns - trace->begin_ns : 0;
    text_add(t, "%8llu.%06llu ", (unsigned long long)(since / 1000000),
             (unsigned long long)(since % 1000000));
}

static void add_end(struct text *t, const struct trace *trace, uint64_t begin_ns, uint64_t end_ns)
{
    text_add(t, end_ns ? ", " : ", under way for ");
    text_add_duration(t, (end_ns ? end_ns : trace->held->now.ns) - begin_ns);
}

/* The ranks of the world of a comm's members for which pick() holds. */
static void add_ranks(struct text *t, const struct history *h, const struct trace_meeting *m,
                      bool (*pick)(const struct history_op *op, const void *as), const void *as)
{
    int ranks[RANKS_MAX], n = 0;
    for (uint32_t p = 0; p < h->size; p++)
        if (pick(m->at[p], as) && h->rank[p].rank != RANK_NOBODY)
            ranks[n++] = (int)h->rank[p].rank;
    phrase_ranks(t, ranks, n);
}

static bool is_missing(const struct history_op *op, const void *as)
{
    (void)as;
    return !op || !op->arrived_ns;
}

static bool is_like(const struct history_op *op, const void *as)
{
    return op && trace_alike(op, as);
}

static bool has_failed(const struct history_op *op, const void *as)
{
    const struct history_op *like = as;
    return op && op->result == like->result;
}

static void add_call(struct text *t, const struct trace *trace, const struct history_op *op)
{
    char site[STATE_SITE];
    struct text s = TEXT_IN(site);
    text_clear(&s);
    trace_add_site(&s, trace, op);
    trace_add_name(t, op);
    text_add(t, " at %s", phrase_short(site));
}

static void add_failures(struct text *t, const struct history *h, const struct trace_meeting *m)
{
    for (uint32_t p = 0, q; p < h->size; p++) {
        if (!m->at[p] || m->at[p]->result >= 0)
            continue;
        for (q = 0; !m->at[q] || m->at[q]->result != m->at[p]->result;)
            q++;
        if (q < p)
            continue;
        text_add(t, "; %s on ", error_name(m->at[p]->result));
        add_ranks(t, h, m, has_failed, m->at[p]);
    }
}

static void say_meeting(FILE *out, const struct trace *trace, const struct history *h,
                        const struct trace_meeting *m)
{
    char line[LINE_ROOM];
    struct text t = TEXT_IN(line);
    text_clear(&t);
    add_time(&t, trace, m->begin_ns);
    for (uint32_t p = 0, said = 0; p < h->size; p++) {
        bool first = m->at[p] != NULL;
        for (uint32_t q = 0; q < p && first; q++)
            first = !m->at[q] || !trace_alike(m->at[q], m->at[p]);
        if (!first)
            continue;
        text_add(&t, said++ ? "; " : "");
        if (m->parties > 1) {
            add_ranks(&t, h, m, is_like, m->at[p]);
            text_add(&t, ": ");
        }
        add_call(&t, trace, m->at[p]);
        const char *way = algorithm_name(m->at[p]->algorithm);
        if (m->parties == 1 && m->at[p]->algorithm)
            text_add(&t, " by %s", way);
    }
    if (h->parent) {
        text_add(&t, " on ");
        trace_add_comm(&t, h);
    }
    add_end(&t, trace, m->begin_ns, m->end_ns);
    if (m->came < h->size && !m->early) {
        text_add(&t, "; not there: ");
        add_ranks(&t, h, m, is_missing, NULL);
    }
    if (m->last >= 0 && m->waited) {
        text_add(&t, "; last: rank %u, by ", h->rank[m->last].rank);
        text_add_duration(&t, m->late_ns);
    }
    add_failures(&t, h, m);
    ps_wrap(out, line);
}

static void say_alone(FILE *out, const struct trace *trace, const struct trace_op *o)
{
    char line[LINE_ROOM];
    struct text t = TEXT_IN(line);
    text_clear(&t);
    add_time(&t, trace, o->op->began_ns);
    text_add(&t, "rank %u: ", o->comm->rank[o->member].rank);
    add_call(&t, trace, o->op);
    if (o->comm->parent) {
        text_add(&t, " on ");
        trace_add_comm(&t, o->comm);
    }
    add_end(&t, trace, o->op->began_ns, o->op->ended_ns);
    if (o->op->result < 0)
        text_add(&t, "; %s", error_name(o->op->result));
    ps_wrap(out, line);
}

static void say_head(FILE *out, const struct trace *t, const char *head)
{
    char line[LINE_ROOM];
    struct text text = TEXT_IN(line);
    text_clear(&text);
    text_add(&text, "%s", head);
    ps_wrap(out, line);
    text_clear(&text);
    text_add(&text, "%zu calls, each rank's last ones; times in ms, of one clock, right to %d ns",
             t->n, HISTORY_UNCERTAIN_NS);
    if (t->left_out)
        text_add(&text, "; %u comms too many to look at", t->left_out);
    ps_wrap(out, line);
}

void trace_text(FILE *out, const struct trace *t, const char *head)
{
    struct trace_walk walk;
    struct trace_meeting m;
    say_head(out, t, head);
    if (trace_walk_begin(&walk, t) != 0)
        return;
    for (size_t i = 0; i < t->n; i++) {
        const struct trace_op *o = &t->op[i];
        if (!o->op->number)
            say_alone(out, t, o);
        else if (trace_walk_first(&walk, o, &m))
            say_meeting(out, t, o->comm, &m);
    }
    trace_walk_end(&walk);
}
