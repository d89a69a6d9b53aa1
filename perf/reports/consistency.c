/* Figures of one machine must agree with each other, whoever made them: a barrier carries
 * nothing, so it is not slower than an all_reduce of one element; that is not slower than a
 * reduce and a broadcast; more bytes do not take less time. What does not fit is said beside the
 * figures. A comparison counts only where the middle halves of the rounds do not touch, and by a
 * margin, because sizes are measured one after the other on a machine that drifts, most where
 * ranks outnumber CPUs. Of other systems it is said, too, but only the library's own are held
 * against it. */
#include "reports/question.h"

#include <stdio.h>
#include <string.h>

enum { ROUNDS_LEAST = 3 };

static bool clearly_longer(const struct series *a, const struct series *b, double more)
{
    return a->n >= ROUNDS_LEAST && b->n >= ROUNDS_LEAST
        && series_quantile(a, 0.25) > (1 + more) * series_quantile(b, 0.75);
}

static double margin(const struct report *r, int ranks)
{
    return ranks > r->machine.cpus ? 0.5 : 0.15;
}

static bool library(const struct figure *f) { return !strncmp(f->contender, "tutti", 5); }

static enum operation_id operation_of(const struct figure *f)
{
    for (int op = OP_BARRIER; op < OPS; op++)
        if (!strcmp(f->what, operations[op].name))
            return (enum operation_id)op;
    return OP_NONE;
}

/* The next larger size takes clearly less time. Returns whether so; of the library it is
 * said which. */
static bool shrinks(struct report *r, const struct figure *f)
{
    const struct figure *larger = NULL;
    char a[32], b[32];
    for (int i = 0; i < r->figure_count; i++) {
        const struct figure *g = &r->figures[i];
        if (g->ranks == f->ranks && g->bytes > f->bytes && !strcmp(g->what, f->what)
            && !strcmp(g->contender, f->contender) && (!larger || g->bytes < larger->bytes))
            larger = g;
    }
    if (!larger || !clearly_longer(&f->rounds, &larger->rounds, margin(r, f->ranks)))
        return false;
    if (library(f))
        report_remark(r, true, "%s, %s, %d ranks: %s take longer than %s", f->contender, f->what,
                      f->ranks, unit_text(a, sizeof a, UNIT_BYTES, (double)f->bytes),
                      unit_text(b, sizeof b, UNIT_BYTES, (double)larger->bytes));
    return true;
}

/* Of others only how often. */
static void sizes_of(struct report *r, const char *contender)
{
    int times = 0;
    for (int i = 0; i < r->figure_count; i++)
        if (!strcmp(r->figures[i].contender, contender) && operation_of(&r->figures[i]) != OP_NONE)
            times += shrinks(r, &r->figures[i]);
    if (times && strncmp(contender, "tutti", 5) != 0)
        report_remark(r, false, "%s: more bytes took clearly less time, %d times", contender,
                      times);
}

/* all_reduce of one element against the operations of the same system that it is made of, and those
 * that it is more than. */
static void order(struct report *r, const struct figure *f)
{
    const struct figure *barrier = report_find(r, "barrier", f->contender, f->ranks, 0);
    const struct figure *reduce = report_find(r, "reduce", f->contender, f->ranks, 4),
                        *broadcast = report_find(r, "broadcast", f->contender, f->ranks, 4);
    if (barrier && clearly_longer(&barrier->rounds, &f->rounds, margin(r, f->ranks)))
        report_remark(r, library(f),
                      "%s, %d ranks: a barrier takes longer than an all_reduce of one element",
                      f->contender, f->ranks);
    if (!reduce || !broadcast)
        return;
    struct series both = { 0 };
    for (size_t i = 0; i < reduce->rounds.n && i < broadcast->rounds.n; i++)
        series_add(&both, reduce->rounds.at[i] + broadcast->rounds.at[i]);
    if (clearly_longer(&f->rounds, &both, margin(r, f->ranks)))
        report_remark(r, library(f),
                      "%s, %d ranks: an all_reduce of one element takes longer than reduce and "
                      "broadcast",
                      f->contender, f->ranks);
    series_free(&both);
}

void check_consistency(struct report *r)
{
    for (int i = 0; i < r->figure_count; i++) {
        bool first = true;
        for (int k = 0; k < i; k++)
            first &= strcmp(r->figures[k].contender, r->figures[i].contender) != 0;
        if (first)
            sizes_of(r, r->figures[i].contender);
        if (operation_of(&r->figures[i]) == OP_ALL_REDUCE && r->figures[i].bytes == 4)
            order(r, &r->figures[i]);
    }
}
