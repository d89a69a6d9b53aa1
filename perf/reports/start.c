/* From the call, or the start of the launcher, until the last rank is through its first barrier:
 * what everybody waits for who starts a job of a second, and every test suite. A peer's job is
 * started for nothing else, and dismissed. The floor is the same program without tutti; its ratio
 * is of neighbours in time. */
#include "reports/question.h"

#include "harness/foreign.h"
#include "harness/limit.h"
#include "harness/progress.h"
#include "harness/start.h"

#include <stdio.h>
#include <string.h>

enum { MANY_RANKS = 16 };              /* so many take seconds to start */
enum { BARE, RUN, SPAWN, OPENMPI, MPICH, GLOO, COUNT };
static const struct { const char *name, *system; } rows[COUNT] = {
    [BARE] = { "bare program", NULL },
    [RUN] = { "tutti run", NULL }, [SPAWN] = { "tutti_spawn", NULL },
    [OPENMPI] = { "Open MPI", "openmpi" }, [MPICH] = { "MPICH", "mpich" },
    [GLOO] = { "Gloo", "gloo" },
};

/* Those that promises are about come first: the others are the first to be left out. */
static const int turns[COUNT] = { BARE, RUN, MPICH, SPAWN, OPENMPI, GLOO };

static void peer(const struct question *p, int which, struct series *to, char *why, size_t room)
{
    struct job_plan plan = { .ranks = p->ranks, .setting = { .system = rows[which].system } };
    struct job *job = job_start(&plan, why, room);
    if (!job)
        return;
    if (job_first(job) > 0)
        series_add(to, job_first(job));
    job_end(job);
}

static void tell(struct report *report, int ranks, const struct series *s)
{
    static const char *const heads[] = { "", "min", "p50", "p99", "max", "/ tutti run", "samples" };
    static const int width[] = { -18, 10, 10, 10, 10, 12, 8 };
    struct table *t = report_table(report, 7, heads, width);
    char title[96];
    snprintf(t->title, sizeof t->title, "Start of %d ranks", ranks);
    snprintf(t->note, sizeof t->note,
             "From the call, or the start of the launcher, until the last rank is through its "
             "first barrier. Bare: vfork and exec of the same program, until the last one is where "
             "it would call tutti_init. Gloo: its ranks are started by hand and meet by files.");
    snprintf(title, sizeof title, "Start of %d ranks, to the first barrier done", ranks);
    struct plot *p = report_distribution(report, title, "time after the start", "share of starts");
    for (int i = 0; i < COUNT; i++) {
        char text[6][32], name[64];
        if (!s[i].n)
            continue;
        struct figure *f = report_figure(report, "start", rows[i].name, UNIT_NS, ranks);
        figure_single(f, &s[i]);
        figure_rounds(f, &s[i]);
        f->ratio = series_ratio(&s[i], &s[RUN]);
        snprintf(f->against, sizeof f->against, "%s", rows[RUN].name);
        const char *cells[] = {
            rows[i].name, unit_text(text[0], sizeof text[0], UNIT_NS, f->least),
            unit_text(text[1], sizeof text[1], UNIT_NS, f->median),
            unit_text(text[2], sizeof text[2], UNIT_NS, f->p99),
            unit_text(text[3], sizeof text[3], UNIT_NS, f->most),
            s[RUN].n ? unit_text(text[4], sizeof text[4], UNIT_RATIO, f->ratio.median) : "-",
            unit_text(text[5], sizeof text[5], UNIT_COUNT, (double)f->samples)
        };
        table_row(t, i == RUN, cells);
        snprintf(name, sizeof name, "%s %s", rows[i].name, cells[2]);
        curve_cumulative(plot_curve(p, name,
                                    i == RUN ? 0
                                        : i == SPAWN ? 5
                                        : i == BARE ? 6
                                        : i - OPENMPI + 1),
                         &s[i]);
    }
}

/* The floor may be missed by this much; more where there are many ranks. */
static void promise(struct report *report, int ranks, const struct series *s)
{
    char what[80];
    snprintf(what, sizeof what, "start, %d ranks: tutti run / bare program", ranks);
    struct ratio ratio = series_ratio(&s[RUN], &s[BARE]);
    struct promise p = {
        .value = ratio.median, .limit = ranks > PERF_RANKS_MAX ? 5 : 3, .unit = UNIT_RATIO,
        .measured = true, .few = ratio.n < promise_rounds("start", ranks, 0)
    };
    snprintf(p.what, sizeof p.what, "%s", what);
    if (s[RUN].n && s[BARE].n)
        report_judge(report, &p);
}

static void tell_has(struct report *report, int ranks, const struct start_has *run,
                     const struct start_has *bare)
{
    report_remark(report, false,
                  "%d ranks: the last one has %.0f descriptors more than the bare program, %.0f "
                  "KiB more memory of its own, %.0f KiB of the arena; %.0f page faults more",
                  ranks, run->descriptors - bare->descriptors, run->private_kib - bare->private_kib,
                  run->shared_kib - bare->shared_kib, run->faults - bare->faults);
}

void ask_start(const struct question *p)
{
    const char *tutti = p->options->tutti;
    struct series s[COUNT] = { 0 };
    char why[COUNT][REASON_BYTES] = { "" };
    struct start_has run = { 0 }, bare = { 0 };
    double began = stamp_seconds(), budget = p->options->quick ? 0.1 : p->seconds;
    double took[COUNT] = { 0 };
    if (!tutti || !*tutti)
        snprintf(why[RUN], REASON_BYTES, "no tutti command; --tutti names one");
    /* the first one finds its program on the disk */
    int least = limit_set() ? 1 : p->options->quick || p->ranks > MANY_RANKS ? 2 : 5;
    for (int i = 0; i < least || stamp_seconds() - began < budget; i++) {
        double share = (stamp_seconds() - began) / budget;
        for (int k = 0; k < COUNT; k++) {
            int which = turns[i & 1 ? COUNT - 1 - k : k];
            double now = stamp_seconds();
            progress_show(p->done + p->share * (share < 1 ? share : 1), "%d ranks: start of %s",
                          p->ranks, rows[which].name);
            if (why[which][0]
                || (rows[which].system && p->ranks > PERF_RANKS_MAX)
                || (rows[which].system
                    && foreign_left_out(p->options->without, rows[which].system))
                || (limit_set() && now + took[which] > began + budget))
                continue;
            if (which == BARE)
                start_bare(&s[BARE], p->ranks, "/proc/self/exe", &bare);
            else if (which == SPAWN)
                start_spawn(&s[SPAWN], p->ranks);
            else if (which == RUN && !start_run(&s[RUN], p->ranks, tutti, "/proc/self/exe", &run))
                snprintf(why[RUN], REASON_BYTES, "%s run does not work", tutti);
            else if (which != RUN)
                peer(p, which, &s[which], why[which], REASON_BYTES);
            took[which] = stamp_seconds() - now;
        }
    }
    tell(p->report, p->ranks, s);
    promise(p->report, p->ranks, s);
    if (s[RUN].n)
        tell_has(p->report, p->ranks, &run, &bare);
    for (int i = 0; i < COUNT; i++) {
        if (why[i][0])
            report_remark(p->report, false, "start of %s not measured: %s", rows[i].name, why[i]);
        else if (limit_set() && !s[i].n && !(rows[i].system && p->ranks > PERF_RANKS_MAX)
                 && !(rows[i].system && foreign_left_out(p->options->without, rows[i].system)))
            report_remark(p->report, false, "%d ranks: no time for the start of %s", p->ranks,
                          rows[i].name);
        series_free(&s[i]);
    }
}
