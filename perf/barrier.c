/* How long a barrier takes, beside barriers that do nothing but that. Also the 4-byte all_reduce, which is a barrier that carries
 * something, and whose price is promised as a multiple of the barrier's. */
#include "harness/measure.h"
#include "harness/report.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const struct perf_program program = {
    .name = "barrier",
    .question = "How long does a barrier take, beside barriers that know nothing of deaths, deadlines and mistakes?",
    .ranks = "2,8",
    .seconds = 6,
    .examples = "  barrier --ranks 2,4,8\n  barrier --ranks 2 --seconds 20 --html barrier.html\n  barrier --strict --json barrier.json\n",
};

enum { NTH_FLAGS, NTH_CENTRAL, NTH_DISSEMINATION };

static int run_tutti(struct rank *r, uint64_t times)
{
    int error = 0;
    while (times-- && error == 0)
        error = tutti_barrier(r->comm, NULL);
    return error;
}

static int run_all_reduce(struct rank *r, uint64_t times)
{
    int error = 0;
    for (float x = 1, sum = 0; times-- && error == 0; x = 1)
        error = tutti_all_reduce(&x, &sum, 1, TUTTI_F32, TUTTI_SUM, r->comm, NULL);
    return error;
}

static int run_exchange(struct rank *r, uint64_t times)
{
    while (times--)
        bare_exchange(r->bare, r->me, ++r->nth[NTH_FLAGS]);
    return 0;
}

static int run_flags(struct rank *r, uint64_t times)
{
    while (times--)
        bare_flags(r->bare, r->me, r->size, ++r->nth[NTH_FLAGS], r->crowded);
    return 0;
}

static int run_central(struct rank *r, uint64_t times)
{
    while (times--)
        bare_central(r->bare, r->size, ++r->nth[NTH_CENTRAL]);
    return 0;
}

static int run_dissemination(struct rank *r, uint64_t times)
{
    while (times--)
        bare_dissemination(r->bare, r->me, r->size, ++r->nth[NTH_DISSEMINATION]);
    return 0;
}

static int run_posix(struct rank *r, uint64_t times)
{
    while (times--)
        if (pthread_barrier_wait(&r->bare->posix) > 0)
            return -EIO;
    return 0;
}

enum { TUTTI, TUTTI_FLAGS, TUTTI_CENTRAL, TUTTI_4_BYTES, EXCHANGE, FLAGS, CENTRAL, DISSEMINATION, POSIX, COUNT };

static const struct contender contenders[] = {
    [TUTTI] = { "tutti", "tutti_barrier, the algorithm chosen by the library", NULL, 0, false, 0, 0, run_tutti, NULL },
    [TUTTI_FLAGS] = { "tutti flags", "tutti_barrier, flags forced", "barrier:-inf=flags", 0, false, 0, 0, run_tutti, NULL },
    [TUTTI_CENTRAL] = { "tutti central", "tutti_barrier, central forced", "barrier:-inf=central", 0, false, 0, 0, run_tutti, NULL },
    [TUTTI_4_BYTES] = { "tutti all_reduce 4 B", "tutti_all_reduce of one float", NULL, 0, false, 0, 0, run_all_reduce, NULL },
    [EXCHANGE] = { "bare exchange", "two ranks, two stores, two loads", NULL, 2, true, 0, 0, run_exchange, NULL },
    [FLAGS] = { "bare flags", "one flag a rank, read by all", NULL, 0, false, 0, 0, run_flags, NULL },
    [CENTRAL] = { "bare central yields", "one counter, one sense", NULL, 0, false, 0, 0, run_central, NULL },
    [DISSEMINATION] = { "dissemination yields", "log2 N messages a rank", NULL, 0, false, 0, 0, run_dissemination, NULL },
    [POSIX] = { "pthread_barrier", "the C library's, shared between processes", NULL, 0, false, 0, 0, run_posix, NULL },
    [COUNT] = { 0 }
};

static void tell(struct report *report, const struct team *team, const struct measured *m, int reference)
{
    static const char *const heads[] = { "", "batch", "min", "p50", "p99", "max", "ratio", "spread" };
    static const int width[] = { -20, 8, 8, 8, 8, 8, 6, 11 };
    struct table *t = report_table(report, 8, heads, width);
    snprintf(t->title, sizeof t->title, "%d ranks, %s", team->ranks, team->crowded ? "more than CPUs" : "a CPU each");
    snprintf(t->note, sizeof t->note, "batch: one of many back to back, median of rounds. min to max: %s. ratio: batch against %s, "
             "median of the ratios of %zu rounds; spread: the middle half of them.", team->crowded ? "each from the end of the one before" : "started together, until the last is through",
             contenders[reference].name, m[reference].rounds.n);
    struct plot *p = report_plot(report);
    snprintf(p->title, sizeof p->title, "Barrier of %d ranks%s", team->ranks, team->crowded ? " on fewer CPUs" : "");
    snprintf(p->note, sizeof p->note, "How many of the barriers took at most so long. Further left is better; median beside the name.");
    snprintf(p->x_title, sizeof p->x_title, "time until the last rank is through");
    snprintf(p->y_title, sizeof p->y_title, "share of barriers");
    p->x_scale = SCALE_LOG;
    p->y_unit = UNIT_SHARE;
    for (int i = 0; i < COUNT; i++) {
        char text[8][32], name[64];
        const char *cells[8] = { contenders[i].name };
        if (!m[i].in)
            continue;
        struct figure *f = report_figure(report, i == TUTTI_4_BYTES ? "all_reduce" : "barrier", contenders[i].name, UNIT_NS, team->ranks);
        figure_single(f, &m[i].single);
        f->bytes = i == TUTTI_4_BYTES ? 4 : 0;
        f->value = series_median(&m[i].rounds);
        f->ratio = series_ratio(&m[i].rounds, &m[reference].rounds);
        snprintf(f->against, sizeof f->against, "%s", contenders[reference].name);
        const double values[] = { f->value, f->least, f->median, f->p99, f->most };
        for (int k = 0; k < 5; k++)
            cells[k + 1] = unit_text(text[k], sizeof text[k], UNIT_NS, values[k]);
        cells[6] = unit_text(text[6], sizeof text[6], UNIT_RATIO, f->ratio.median);
        snprintf(text[7], sizeof text[7], f->ratio.high < 9.995 ? "%.2f-%.2f" : "%.3g-%.3g", f->ratio.low, f->ratio.high);
        cells[7] = text[7];
        table_row(t, i == TUTTI, cells);
        if (i == TUTTI_4_BYTES)
            continue;
        snprintf(name, sizeof name, "%s %s", contenders[i].name, text[2]);
        curve_cumulative(plot_curve(p, name, i < TUTTI_4_BYTES ? i : i - 1), &m[i].single);
    }
}

static void promise(struct report *report, const struct team *team, const struct measured *m)
{
    char what[80];
    if (!team->crowded && m[EXCHANGE].in) {
        report_promise(report, "2 ranks: barrier / bare exchange", series_ratio(&m[TUTTI].rounds, &m[EXCHANGE].rounds).median, 1.4, UNIT_RATIO);
        report_promise(report, "2 ranks: all_reduce of 4 bytes / barrier", series_ratio(&m[TUTTI_4_BYTES].rounds, &m[TUTTI].rounds).median,
                       1.5, UNIT_RATIO);
    }
    if (team->crowded) {
        snprintf(what, sizeof what, "%d ranks on fewer CPUs: barrier / bare central", team->ranks);
        report_promise(report, what, series_ratio(&m[TUTTI].rounds, &m[CENTRAL].rounds).median, 2, UNIT_RATIO);
    }
}

int main(int argc, char **argv)
{
    struct perf_options options;
    struct report report;
    perf_options(&options, &program, argc, argv);
    stamp_calibrate();
    report_begin(&report, &program);
    for (int k = 0; k < options.lists; k++) {
        struct team team;
        struct measured m[CONTENDERS_MAX] = { 0 };
        struct effort e = { options.seconds, options.quick, true, 0, (double)k / options.lists, 1.0 / options.lists };
        team_open(&team, options.ranks[k], contenders, 4096, 0);
        measure(&team, &e, m);
        team_close(&team);
        tell(&report, &team, m, !team.crowded && m[EXCHANGE].in ? EXCHANGE : team.crowded ? CENTRAL : FLAGS);
        promise(&report, &team, m);
        measured_free(m, COUNT);
    }
    return report_end(&report, &options);
}
