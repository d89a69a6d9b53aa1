/* One barrier, more and more ranks on the same CPUs: where ranks outnumber CPUs it is the scheduler
 * that is measured, and whether a system helps it or stands in its way. */
#include "reports/barrier_contenders.h"
#include "reports/question.h"

#include "os/cpu.h"

#include <stdio.h>

enum { TUTTI, CENTRAL, POSIX, PEERS, COUNT = PEERS + 4 };
static const int steps[] = { 1, 2, 4, 16 };
enum { STEPS = sizeof steps / sizeof *steps };

static const struct contender contenders[] = {
    [TUTTI] = { "tutti", "tutti_barrier", NULL, 0, false, 0, 0, barriers_tutti, NULL, OP_NONE },
    [CENTRAL] = {
        "bare central", "one counter, one sense; yields", NULL, 0, false, 0, 0,
        barriers_yields, NULL, OP_NONE
    },
    [POSIX] = {
        "pthread_barrier", "the C library's", NULL, 0, false, 0, 0, barriers_posix, NULL, OP_NONE
    },
    PEER("Open MPI", "openmpi"), PEER("MPICH", "mpich"), PEER("GNU OpenMP", "gomp"),
    PEER("LLVM OpenMP", "lomp"), [COUNT] = { 0 }
};
static const char *const heads[] = {
    "ranks", "tutti", "central", "pthread", "OpenMPI", "MPICH", "GNU", "LLVM"
};
static const int hues[] = { 0, 7, 8, 1, 2, 3, 4 };

void ask_crowd(const struct question *p, const int *ranks, int count)
{
    static const int width[] = { 6, 9, 9, 9, 9, 9, 9, 9 };
    int cpus = cpu_allowed(), multiples[STEPS], last = 0;
    for (int k = 0; k < STEPS && steps[k] * cpus <= PERF_RANKS_MAX; k++)
        multiples[last++] = steps[k] * cpus;
    if (!count) {
        ranks = multiples;
        count = last;
    }
    struct table *t = report_table(p->report, COUNT + 1, heads, width);
    struct plot *plot = report_plot(p->report);
    snprintf(t->title, sizeof t->title, "Barrier, more and more ranks on %d CPU%s", cpus,
             cpus == 1 ? "" : "s");
    snprintf(t->note, sizeof t->note,
             "One of many back to back, median of rounds. central: the bare one; it yields here, "
             "always.");
    snprintf(plot->title, sizeof plot->title, "Barrier, ranks for each of %d CPU%s", cpus,
             cpus == 1 ? "" : "s");
    snprintf(plot->note, sizeof plot->note,
             "Lower is better. Beyond 1 somebody has to give way for every rank that arrives.");
    snprintf(plot->x_title, sizeof plot->x_title, "ranks for each CPU");
    snprintf(plot->y_title, sizeof plot->y_title, "time of a barrier");
    plot->x_unit = UNIT_COUNT;
    plot->x_scale = plot->y_scale = SCALE_LOG;
    for (int i = 0; i < COUNT; i++)
        plot_curve(plot, contenders[i].name, hues[i])->marks = true;
    for (int k = 0; k < count; k++) {
        struct team team;
        struct measured m[CONTENDERS_MAX] = { 0 };
        double done = p->done + p->share * k / count;
        struct effort e = {
            p->seconds / count, p->options->quick, true, 0, done,
            p->share / count, OP_BARRIER, false, 1
        };
        char text[COUNT + 1][32];
        const char *cells[COUNT + 1];
        team_open(&team,
                  &(struct team_plan){ .ranks = ranks[k],
                                       .contenders = contenders,
                                       .shared_bytes = 4096,
                                       .without = p->options->without,
                                       .done = done });
        measure(&team, &e, m);
        team_close(&team);
        cells[0] = unit_text(text[0], sizeof text[0], UNIT_COUNT, team.ranks);
        for (int i = 0; i < COUNT; i++) {
            cells[i + 1] = "-";
            if (!m[i].in)
                continue;
            struct figure *f = report_figure(p->report, "crowd", contenders[i].name, UNIT_NS,
                                             team.ranks);
            figure_single(f, &m[i].single);
            figure_rounds(f, &m[i].rounds);
            f->ratio = series_ratio(&m[i].rounds, &m[TUTTI].rounds);
            snprintf(f->against, sizeof f->against, "%s", contenders[TUTTI].name);
            curve_point(&plot->curves[i], (double)ranks[k] / cpus, f->value);
            cells[i + 1] = unit_text(text[i + 1], sizeof text[0], UNIT_NS, f->value);
        }
        table_row(t, false, cells);
        remark_systems(p->report, &team, m);
        measured_free(m, COUNT);
    }
}
