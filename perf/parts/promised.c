/* What a barrier costs that keeps its promises, above one that does not: all variants on one comm, in turns, in one crew, so that nothing differs
 * but their instructions. Most of those a rank carries out while its line is on the way, so leaving some out brings its first look
 * forward, and whoever looks too early pays a third transfer (see BACKOFF in api/run.h): each variant is measured with several pauses
 * before that look, and its best counts. So is the whole barrier, compiled as they are: it is what they are held against, and what
 * stands between it and the library's own says how far the others can be believed. */
#include "parts/promised.h"

#include "parts/part.h"

#include <stdio.h>

enum { WHOLE, FINGERPRINT, JOURNAL, VERDICT, ALIVE, ALL, VARIANTS, BACKOFF_TUNED = 9 };
enum { CREWS = 4 };                                    /* which pages a job gets is worth some ns: so several, one after the other */
enum { TUTTI, FIRST, EXCHANGE = FIRST + VARIANTS * BACKOFF_TUNED, COUNT };       /* of the contenders */
enum { COST_MOST = 10, COST_AIM = 5 };                 /* percent of a barrier */

_Static_assert((int)COUNT <= (int)CONTENDERS_MAX, "all take part");
uint32_t promised_backoff;

#define RUN(name, at, steps)                                                                                                      \
    static int name##_##steps(struct rank *r, uint64_t times)                                                                     \
    {                                                                                                                             \
        int error = 0;                                                                                                            \
        promised_backoff = steps;                                                                                                  \
        while (times-- && error == 0)                                                                                             \
            error = at("promised", r->comm, NULL);                                                                                \
        return error;                                                                                                             \
    }
/* The pauses that the library chooses from (base/backoff.c). */
#define RUNS(name, at)                                                                                                             \
    RUN(name, at, 0) RUN(name, at, 16) RUN(name, at, 32) RUN(name, at, 60) RUN(name, at, 90) RUN(name, at, 102) RUN(name, at, 114)  \
    RUN(name, at, 126) RUN(name, at, 172)
RUNS(whole, promised_without_nothing_at)
RUNS(fingerprint, promised_without_fingerprint_at)
RUNS(journal, promised_without_journal_at)
RUNS(verdict, promised_without_verdict_at)
RUNS(alive, promised_without_alive_at)
RUNS(all, promised_without_all_at)
RUN(tutti, tutti_barrier_at, 0)                        /* goes by its own number */

static int run_exchange(struct rank *r, uint64_t times)
{
    while (times--)
        bare_exchange(r->bare, r->me, ++r->nth[0]);
    return 0;
}

struct variant { const char *name, *help; int (*runs[BACKOFF_TUNED])(struct rank *r, uint64_t times); };
#define EACH(name) { name##_0, name##_16, name##_32, name##_60, name##_90, name##_102, name##_114, name##_126, name##_172 }
static const struct variant variants[VARIANTS] = {
    [WHOLE] = { "whole", "the library's, compiled as these are", EACH(whole) },
    [FINGERPRINT] = { "without fingerprint", "does not look what the others call", EACH(fingerprint) },
    [JOURNAL] = { "without journal", "takes no notes, nor the time", EACH(journal) },
    [VERDICT] = { "without verdict", "does not look whether it has failed", EACH(verdict) },
    [ALIVE] = { "without alive", "waits for the dead for ever, and wakes nobody", EACH(alive) },
    [ALL] = { "without all of these", "", EACH(all) },
};
#define ROW(name, help, run) { name, help, NULL, 0, true, 0, 0, run, NULL, OP_NONE }

/* The library's own goes first: by its check each of a rank's two arrivals says barrier, for those variants that do not say what they are. */
static void contend(struct contender rows[COUNT + 1], int settles)
{
    int n = 0;
    rows[n++] = (struct contender)ROW("tutti", "tutti_barrier", tutti_0);
    for (int v = 0; v < VARIANTS; v++)
        for (int s = 0; s < settles; s++)
            rows[n++] = (struct contender)ROW(variants[v].name, variants[v].help, variants[v].runs[s]);
    if (settles == BACKOFF_TUNED)
        rows[n++] = (struct contender)ROW("bare exchange", "two stores, two loads", run_exchange);
    rows[n] = (struct contender){ 0 };
}

/* By the lower quarter: whoever else runs here makes it longer, never shorter. */
static const struct measured *best(const struct measured *m, int v)
{
    const struct measured *first = &m[FIRST + v * BACKOFF_TUNED], *least = first;
    for (int s = 1; s < BACKOFF_TUNED; s++)
        if (series_quantile(&first[s].rounds, 0.25) < series_quantile(&least->rounds, 0.25))
            least = &first[s];
    return least;
}

/* Of single ones. They start together, so another pause may be best for them. */
static const struct series *best_single(const struct measured *m, int v)
{
    const struct measured *first = &m[FIRST + v * BACKOFF_TUNED];
    const struct series *least = &first->single;
    for (int s = 1; s < BACKOFF_TUNED; s++)
        if (series_median(&first[s].single) < series_median(least))
            least = &first[s].single;
    return least;
}

/* A rank alone: what is to be done, with nobody to wait for. */
static void alone(const struct part *p, double one[VARIANTS])
{
    struct contender rows[COUNT + 1];
    struct measured m[CONTENDERS_MAX] = { 0 };
    struct team team;
    struct effort e = { 0.1 * p->seconds, p->options->quick, true, 0, p->done + 0.9 * p->share, 0.1 * p->share, OP_BARRIER, false, 1 };
    contend(rows, 1);
    team_open(&team, &(struct team_plan){ .ranks = 1, .contenders = rows, .shared_bytes = 4096, .done = e.done });
    measure(&team, &e, m);
    team_close(&team);
    for (int v = 0; v < VARIANTS; v++) {
        struct figure *f = report_figure(p->report, "promised", variants[v].name, UNIT_NS, 1);
        figure_single(f, &m[FIRST + v].single);
        figure_rounds(f, &m[FIRST + v].rounds);
        one[v] = f->value;
    }
    measured_free(m, team.count);
}

static void row(const struct part *p, struct table *t, const char *name, const struct measured *m, const struct series *single,
                const struct measured *whole, double one)
{
    char text[6][32];
    struct figure *f = report_figure(p->report, "promised", name, UNIT_NS, p->ranks);
    figure_single(f, single);
    figure_rounds(f, &m->rounds);
    f->ratio = series_ratio(&m->rounds, &whole->rounds);
    snprintf(f->against, sizeof f->against, "%s", variants[WHOLE].name);
    snprintf(text[2], sizeof text[2], "%.1f ns", series_median(&whole->rounds) * (1 - f->ratio.median));
    snprintf(text[3], sizeof text[3], "%.1f %%", 100 * (1 - f->ratio.median));
    snprintf(text[4], sizeof text[4], "%.1f to %.1f", 100 * (1 - f->ratio.high), 100 * (1 - f->ratio.low));
    bool itself = m == whole;
    const char *cells[] = { name, unit_text(text[0], sizeof text[0], UNIT_NS, f->value), unit_text(text[1], sizeof text[1], UNIT_NS, f->median),
                            itself ? "" : text[2], itself ? "" : text[3], itself ? "" : text[4],
                            one > 0 ? unit_text(text[5], sizeof text[5], UNIT_NS, one) : "" };
    table_row(t, itself, cells);
}

static void tell(const struct part *p, const struct measured *m, const double one[VARIANTS])
{
    static const char *const heads[] = { "", "batch", "p50", "cost", "of it", "spread", "1 rank" };
    static const int width[] = { -22, 8, 8, 9, 9, 14, 8 };
    const struct measured *whole = best(m, WHOLE);
    struct table *t = report_table(p->report, 7, heads, width);
    snprintf(t->title, sizeof t->title, "Barrier, %d ranks, without what a promise costs", p->ranks);
    snprintf(t->note, sizeof t->note, "batch: one of many back to back, median of %zu rounds; p50: of single ones. cost: how much faster it is than the "
             "whole one, median of rounds, and the middle half of them. Each looks when it is best for it; tutti is the library's own. "
             "1 rank: batch of a rank alone, what there is to do.", whole->rounds.n);
    for (int v = 0; v < VARIANTS; v++)
        row(p, t, variants[v].name, best(m, v), best_single(m, v), whole, one[v]);
    row(p, t, "tutti", &m[TUTTI], &m[TUTTI].single, whole, 0);
    row(p, t, "bare exchange", &m[EXCHANGE], &m[EXCHANGE].single, whole, 0);
    struct promise promise = { .limit = COST_MOST, .aim = COST_AIM, .unit = UNIT_SHARE, .measured = true };
    promise.value = 100 * (1 - series_ratio(&best(m, ALL)->rounds, &whole->rounds).median);
    snprintf(promise.what, sizeof promise.what, "cost of all promises, of a barrier");
    report_judge(p->report, &promise);
}

void part_promised(const struct part *p)
{
    struct contender rows[COUNT + 1];
    struct measured m[CONTENDERS_MAX] = { 0 };
    struct team team;
    double one[VARIANTS];
    int crews = p->options->quick ? 1 : CREWS;
    if (p->ranks != 2 || p->report->machine.cpus < 2) {
        report_remark(p->report, false, "%d ranks: the cost of promises is measured with 2 ranks, a CPU each", p->ranks);
        return;
    }
    contend(rows, BACKOFF_TUNED);
    for (int i = 0; i < crews; i++) {
        double share = 0.9 * p->share / crews;
        struct effort e = { 0.9 * p->seconds / crews, p->options->quick, true, 0, p->done + share * i, share, OP_BARRIER, false, 1 };
        team_open(&team, &(struct team_plan){ .ranks = p->ranks, .contenders = rows, .shared_bytes = 4096, .done = e.done });
        measure(&team, &e, m);
        team_close(&team);
    }
    alone(p, one);
    bool all = true;
    for (int i = 0; i < COUNT; i++)
        all &= m[i].in;
    if (all)
        tell(p, m, one);
    part_systems(p->report, &team, m);
    measured_free(m, COUNT);
}
