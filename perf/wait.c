/* What a wait costs that lasts: one rank comes 100 ms late, and the others should have slept, not spun; and how soon they are back. */
#include "harness/measure.h"
#include "harness/progress.h"
#include "harness/report.h"

#include <errno.h>
#include <stdio.h>

static const struct perf_program program = {
    .name = "wait",
    .question = "How much CPU time does a rank burn that waits 100 ms for the last one, and how soon after it is it back?",
    .ranks = "2,8",
    .seconds = 6,
    .examples = "  wait --ranks 2,4,8\n  wait --strict\n",
};

static int run_tutti(struct rank *r, uint64_t times)
{
    int error = 0;
    while (times-- && error == 0)
        error = tutti_barrier(r->comm, NULL);
    return error;
}

static int run_central(struct rank *r, uint64_t times)
{
    while (times--)
        bare_central(r->bare, r->size, ++r->nth[0]);
    return 0;
}

static int run_posix(struct rank *r, uint64_t times)
{
    while (times--)
        if (pthread_barrier_wait(&r->bare->posix) > 0)
            return -EIO;
    return 0;
}

enum { TUTTI, POSIX, CENTRAL, COUNT };

static const struct contender contenders[] = {
    [TUTTI] = { "tutti", "tutti_barrier", NULL, 0, false, 0, 0, run_tutti, NULL },
    [POSIX] = { "pthread_barrier", "sleeps at once", NULL, 0, false, 0, 0, run_posix, NULL },
    [CENTRAL] = { "bare central yields", "never sleeps", NULL, 0, false, 0, 0, run_central, NULL },
    [COUNT] = { 0 }
};

static void compare(struct report *report, const struct perf_options *o, int k)
{
    static const char *const heads[] = { "", "CPU p50", "CPU p99", "CPU max", "back p50", "back p99", "samples" };
    static const int width[] = { -22, 9, 9, 9, 10, 10, 9 };
    struct team team;
    struct series burnt[COUNT] = { 0 }, back[COUNT] = { 0 };
    team_open(&team, o->ranks[k], contenders, 4096, 0);
    double began = stamp_seconds();
    for (int i = 0; i < COUNT || (!o->quick && stamp_seconds() - began < o->seconds); i++) {
        double share = (stamp_seconds() - began) / o->seconds;
        progress_show((k + (share < 1 ? share : 1)) / o->lists, "%d ranks: %s", team.ranks, contenders[i % COUNT].name);
        struct task task = { .form = FORM_LATE, .contender = i % COUNT, .samples = o->quick ? 1 : 2, .warm = 4, .times = 1 };
        crew_run(team.crews[0], &task, &burnt[i % COUNT], &back[i % COUNT]);
    }
    team_close(&team);

    struct table *t = report_table(report, 7, heads, width);
    snprintf(t->title, sizeof t->title, "%d ranks, %s, one comes %d ms late", team.ranks, team.crowded ? "more than CPUs" : "a CPU each", LATE_MS);
    snprintf(t->note, sizeof t->note, "CPU: CLOCK_THREAD_CPUTIME_ID of the waiting rank that burnt most. back: from the late rank's arrival to "
             "the return of the last rank.");
    for (int i = 0; i < COUNT; i++) {
        char text[6][32];
        const char *cells[7] = { contenders[i].name };
        struct figure *f = report_figure(report, "cpu burnt", contenders[i].name, UNIT_NS, team.ranks);
        figure_single(f, &burnt[i]);
        f->ratio = series_ratio(&burnt[i], &burnt[POSIX]);
        snprintf(f->against, sizeof f->against, "%s", contenders[POSIX].name);
        struct figure *b = report_figure(report, "back", contenders[i].name, UNIT_NS, team.ranks);
        f = b - 1;
        figure_single(b, &back[i]);
        const double values[] = { f->median, f->p99, f->most, b->median, b->p99 };
        for (int n = 0; n < 5; n++)
            cells[n + 1] = unit_text(text[n], sizeof text[n], UNIT_NS, values[n]);
        cells[6] = unit_text(text[5], sizeof text[5], UNIT_COUNT, (double)f->samples);
        table_row(t, i == TUTTI, cells);
    }
    char what[80];
    snprintf(what, sizeof what, "%d ranks: CPU burnt in a wait of %d ms", team.ranks, LATE_MS);
    report_promise(report, what, series_median(&burnt[TUTTI]), 0.5e6, UNIT_NS);
    for (int i = 0; i < COUNT; i++) {
        series_free(&burnt[i]);
        series_free(&back[i]);
    }
}

int main(int argc, char **argv)
{
    struct perf_options options;
    struct report report;
    perf_options(&options, &program, argc, argv);
    stamp_calibrate();
    report_begin(&report, &program);
    for (int k = 0; k < options.lists; k++)
        compare(&report, &options, k);
    return report_end(&report, &options);
}
