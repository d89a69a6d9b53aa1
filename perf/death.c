/* Measures the start and the death of ranks: the time until all have done their first barrier, and
 * the time from a SIGKILL until each survivor returns. */
#include "harness/death.h"
#include "harness/progress.h"
#include "harness/report.h"
#include "harness/start.h"

#include <stdio.h>

static const struct perf_program program = {
    .name = "death",
    .question =
        "How soon do survivors return from a barrier when a rank is killed, and how long do ranks "
        "take to start?",
    .ranks = "2,8",
    .seconds = 8,
    .launches = true,
    .examples =
        "  death --ranks 2,4,8\n  death --seconds 60 --html death.html\n  death --tutti ./tutti\n",
};

enum { ASLEEP, BUSY, EXIT, SPAWN, RUN, KINDS };
static const char *const names[] = {
    "killed as others sleep", "killed among barriers",
    "its exit by a pidfd", "tutti_spawn", "tutti run"
};

static void row(struct report *report, struct table *t, int kind, int ranks, const struct series *s)
{
    char text[6][32];
    struct figure *f = report_figure(report, kind >= SPAWN ? "start" : "death", names[kind],
                                     UNIT_NS, ranks);
    figure_single(f, s);
    const char *cells[] = {
        names[kind], unit_text(text[0], sizeof text[0], UNIT_COUNT, ranks),
        unit_text(text[1], sizeof text[1], UNIT_NS, f->least),
        unit_text(text[2], sizeof text[2], UNIT_NS, f->median),
        unit_text(text[3], sizeof text[3], UNIT_NS, f->p99),
        unit_text(text[4], sizeof text[4], UNIT_NS, f->most),
        unit_text(text[5], sizeof text[5], UNIT_COUNT, (double)f->samples)
    };
    table_row(t, false, cells);
}

static void curve(struct report *report, int which, const char *name, int ranks, int hue,
                  const struct series *s)
{
    char text[32], title[64];
    snprintf(title, sizeof title, "%d ranks, %s %s", ranks, name,
             unit_text(text, sizeof text, UNIT_NS, series_median(s)));
    curve_cumulative(plot_curve(&report->plots[which], title, hue), s);
}

static void promises(struct report *report, int ranks, const struct series *all)
{
    char what[80];
    for (int k = ASLEEP; k <= BUSY; k++) {
        snprintf(what, sizeof what, "%d ranks, %s: median", ranks, names[k]);
        report_promise(report, what, series_median(&all[k]), 1e6, UNIT_NS);
        snprintf(what, sizeof what, "%d ranks, %s: longest", ranks, names[k]);
        report_promise(report, what, series_quantile(&all[k], 1), 100e6, UNIT_NS);
    }
    for (int k = SPAWN; k <= RUN; k++) {
        snprintf(what, sizeof what, "%d ranks, %s to first barrier: median", ranks, names[k]);
        if (all[k].n)
            report_promise(report, what, series_median(&all[k]), 20e6, UNIT_NS);
    }
}

static void compare(struct report *report, const struct perf_options *o, int k, struct table *t,
                    const char *self, const char *tutti)
{
    struct series all[KINDS] = { 0 };
    double began = stamp_seconds(), budget = o->quick ? 0.1 : o->seconds;
    for (int i = 0; i < 2 || stamp_seconds() - began < budget; i++) {
        double share = (stamp_seconds() - began) / budget;
        progress_show((k + (share < 1 ? share : 1)) / o->lists, "%d ranks: life and death %d",
                      o->ranks[k], i + 1);
        if (o->ranks[k] > 1) {
            death_strike(&all[ASLEEP], &all[EXIT], o->ranks[k], true, (unsigned)i);
            death_strike(&all[BUSY], &all[EXIT], o->ranks[k], false, (unsigned)i);
        }
        start_spawn(&all[SPAWN], o->ranks[k]);
        if (tutti && !start_run(&all[RUN], o->ranks[k], tutti, self, NULL))
            tutti = NULL;
    }
    for (int kind = 0; kind < KINDS; kind++) {
        if (!all[kind].n)
            continue;
        row(report, t, kind, o->ranks[k], &all[kind]);
        curve(report, kind >= SPAWN, names[kind], o->ranks[k],
              1 + (3 * k + (kind < SPAWN ? kind : kind - SPAWN)) % 7, &all[kind]);
    }
    promises(report, o->ranks[k], all);
    for (int kind = 0; kind < KINDS; kind++)
        series_free(&all[kind]);
}

int main(int argc, char **argv)
{
    static const char *const heads[] = { "", "ranks", "min", "p50", "p99", "max", "samples" };
    static const int width[] = { -24, 7, 9, 9, 9, 9, 9 };
    struct perf_options options;
    struct report report;
    if (start_child())
        return 0;
    report_open(&report, &program, &options, argc, argv);
    struct table *t = report_table(&report, 7, heads, width);
    snprintf(t->title, sizeof t->title, "Life and death");
    snprintf(t->note, sizeof t->note,
             "killed: from SIGKILL to each survivor's return from its barrier with -EOWNERDEAD; a "
             "sample a survivor. Asleep: they "
             "have waited 30 ms. Exit: until the kernel tells anybody, the floor. Start: from the "
             "call, or the fork of tutti run, until the last rank is through its first barrier.");
    report_distribution(&report, "From SIGKILL to the survivors' return", "time after SIGKILL",
                        "share of survivors");
    report_distribution(&report, "From the start to the first barrier done", "time after the call",
                        "share of starts");
    for (int k = 0; k < options.lists; k++)
        compare(&report, &options, k, t, "/proc/self/exe", *options.tutti ? options.tutti : NULL);
    return report_end(&report, &options);
}
