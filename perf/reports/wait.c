/* What a wait costs that lasts: one rank comes 100 ms late, and the others should have slept, not
 * spun; and how soon they are back. */
#include "reports/barrier_contenders.h"
#include "reports/question.h"
#include "reports/wait_contenders.h"

#include "harness/limit.h"
#include "harness/progress.h"

#include <stdio.h>

enum { TUTTI, POSIX, CENTRAL, PEERS, WAITS = PEERS + 6, COUNT = WAITS + 7 };
enum { WAITS_OF_TASK = 6, WAITS_LEAST = 5 };

#define WAIT(name, run) { "tutti " name, name, NULL, 0, false, 0, 0, run, NULL, OP_NONE }

static const struct contender contenders[] = {
    [TUTTI] = { "tutti", "tutti_barrier", NULL, 0, false, 0, 0, barriers_tutti, NULL, OP_NONE },
    [POSIX] = {
        "pthread_barrier", "sleeps at once", NULL, 0, false, 0, 0, barriers_posix, NULL, OP_NONE
    },
    [CENTRAL] = {
        "bare central yields", "never sleeps", NULL, 0, false, 0, 0, barriers_yields, NULL, OP_NONE
    },
    MPI_AND_GLOO, PEER("GNU OpenMP", "gomp"), PEER("LLVM OpenMP", "lomp"),
    [WAITS] = WAIT("handle", waits_handle), WAIT("receive", waits_receive),
    WAIT("receive handle", waits_letter), WAIT("get", waits_get), WAIT("turn", waits_turn),
    WAIT("once", waits_once), WAIT("first", waits_first),
    [COUNT] = { 0 }
};
static const enum late lates[COUNT] = {
    [WAITS + 4] = LATE_FIRST, [WAITS + 5] = LATE_HOLDS, [WAITS + 6] = LATE_HOLDS
};

static void tell(struct report *report, const struct team *team, const struct series *burnt,
                 const struct series *back)
{
    static const char *const heads[] = {
        "", "CPU p50", "CPU p99", "CPU max", "back p50", "back p99", "samples"
    };
    static const int width[] = { -22, 9, 9, 9, 10, 10, 9 };
    struct table *t = report_table(report, 7, heads, width);
    char title[96];
    snprintf(t->title, sizeof t->title, "Waiting, %d ranks, %s, one comes %d ms late", team->ranks,
             team->crowded ? "more than CPUs" : "a CPU each", LATE_MS);
    snprintf(t->note, sizeof t->note,
             "CPU: CLOCK_PROCESS_CPUTIME_ID of the waiting rank that burnt most, of its thread "
             "in OpenMP. back: from the late rank's arrival to the return of the last rank. tutti "
             "WHAT: what it waits in; else a barrier.");
    snprintf(title, sizeof title, "CPU time burnt in a wait of %d ms, %d ranks%s", LATE_MS,
             team->ranks, team->crowded ? " on fewer CPUs" : "");
    struct plot *p = report_distribution(report, title, "CPU time of the rank that burnt most",
                                         "share of waits");
    for (int i = 0; i < COUNT; i++) {
        char text[6][32], name[64];
        const char *cells[7] = { contenders[i].name };
        if (!burnt[i].n)
            continue;
        struct figure *f = report_figure(report, "cpu burnt", contenders[i].name, UNIT_NS,
                                         team->ranks);
        figure_single(f, &burnt[i]);
        figure_rounds(f, &burnt[i]);
        f->ratio = series_ratio(&burnt[i], &burnt[POSIX]);
        snprintf(f->against, sizeof f->against, "%s", contenders[POSIX].name);
        struct figure *b = report_figure(report, "back", contenders[i].name, UNIT_NS, team->ranks);
        f = b - 1;
        figure_single(b, &back[i]);
        const double values[] = { f->median, f->p99, f->most, b->median, b->p99 };
        for (int n = 0; n < 5; n++)
            cells[n + 1] = unit_text(text[n], sizeof text[n], UNIT_NS, values[n]);
        cells[6] = unit_text(text[5], sizeof text[5], UNIT_COUNT, (double)f->samples);
        table_row(t, i == TUTTI, cells);
        snprintf(name, sizeof name, "%s %s", contenders[i].name, cells[1]);
        curve_cumulative(plot_curve(p, name, i), &burnt[i]);
    }
}

static void promise(struct report *report, const struct team *team, const char *kind,
                    const struct series *burnt)
{
    struct promise p = {
        .value = series_median(burnt), .limit = 0.15e6, .unit = UNIT_NS, .measured = burnt->n > 0,
        .few = burnt->n && burnt->n < WAITS_LEAST
    };
    snprintf(p.what, sizeof p.what, "%d ranks: CPU burnt in a wait of %d ms%s%s", team->ranks,
             LATE_MS, *kind ? ", " : "", kind);
    report_judge(report, &p);
}

/* No promise is about the others. Who had no time to wait as often as the first one is no worse. */
static bool promised(int contender) { return contender == TUTTI || contender >= WAITS; }

/* How often each of those that a promise is about can wait until then, and all others as well. */
static int waits_in(const struct question *p, bool *others)
{
    double each = 1e3 * p->seconds / LATE_MS;
    *others = each > (COUNT + 1) * (WAITS_OF_TASK + 1);
    int times = (int)(each / (1 + COUNT - WAITS)) - 1;
    return times < 2 ? 2 : times < WAITS_OF_TASK ? times : WAITS_OF_TASK;
}

void ask_wait(const struct question *p)
{
    struct team team;
    struct series burnt[COUNT] = { 0 }, back[COUNT] = { 0 };
    struct measured m[CONTENDERS_MAX] = { 0 };
    double began = stamp_seconds();
    bool others = true;
    int samples = limit_set() ? waits_in(p, &others) : WAITS_OF_TASK;
    team_open(&team,
              &(struct team_plan){ .ranks = p->ranks,
                                   .contenders = contenders,
                                   .shared_bytes = 4096,
                                   .without = others ? p->options->without : "all",
                                   .done = p->done });
    if (!others)
        report_remark(p->report, false, "%d ranks: no time for the waits of other systems",
                      p->ranks);
    if (!limit_set())
        began = stamp_seconds();
    for (int i = 0; limit_left() > 0
         && (i < COUNT || (!p->options->quick && stamp_seconds() - began < p->seconds)); i++) {
        double share = (stamp_seconds() - began) / p->seconds;
        int k = i % COUNT;
        if (!others && !promised(k))
            continue;
        /* The first two of a task, one for each who waits, find cold caches: they are not to be
         * the median. */
        struct task task = {
            .form = FORM_LATE, .samples = p->options->quick ? 1 : samples,
            .warm = k < WAITS ? 4 : 0, .times = 1, .op = OP_BARRIER, .late = lates[k]
        };
        progress_show(p->done + p->share * (share < 1 ? share : 1), "%d ranks: %s waits",
                      team.ranks, contenders[k].name);
        if (!m[k].why[0])
            measure_task(&team, k, &task, &burnt[k], &back[k], &m[k]);
    }
    team_close(&team);
    tell(p->report, &team, burnt, back);
    remark_systems(p->report, &team, m);
    if (team.ranks != 2)                   /* that of two is in targets.c */
        promise(p->report, &team, "", &burnt[TUTTI]);
    for (int i = WAITS; i < COUNT; i++)
        promise(p->report, &team, contenders[i].help, &burnt[i]);
    for (int i = 0; i < COUNT; i++) {
        series_free(&burnt[i]);
        series_free(&back[i]);
    }
}
