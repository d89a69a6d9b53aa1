/* How long a sum of floats over all ranks takes, from 4 bytes on, beside what one would write without a library, and beside a copy of
 * the same data, which is what no all_reduce can beat. */
#include "harness/measure.h"
#include "harness/report.h"

#include <stdio.h>
#include <string.h>

static const struct perf_program program = {
    .name = "all_reduce",
    .question = "How long does the sum of floats over all ranks take, from four bytes to many, beside the obvious way and a plain copy?",
    .ranks = "2,8",
    .seconds = 15,
    .sizes = true,
    .examples = "  all_reduce --ranks 2,4\n  all_reduce --most 1M --seconds 5\n  all_reduce --hot --html all_reduce.html\n",
};

enum { ROTATE_FROM = 1 << 20, SETS_LEAST = 2, BLOCK = 2048 };
enum { TUTTI, NAIVE, COPY, COUNT };

/* The owner writes its contribution before each operation, as a program would; from 1 MiB on into the next of its buffers, so that
   it is not found in the caches, unless --hot. */
static void rewrite(struct rank *r)
{
    size_t sets = r->bytes < ROTATE_FROM || r->hot ? 1 : r->room / r->bytes;
    r->turn++;
    r->send = r->sends + (sets ? r->turn % sets : 0) * r->bytes;
    r->recv = r->recvs + (sets ? r->turn % sets : 0) * r->bytes;
    float *x = (float *)(void *)r->send, value = (float)(r->turn & 1023);
    for (size_t i = 0; i < r->bytes / sizeof *x; i++)
        x[i] = value;
}

static int run_tutti(struct rank *r, uint64_t times)
{
    int error = 0;
    for (uint64_t i = 0; i < times && error == 0; i++) {
        if (i)
            rewrite(r);
        error = tutti_all_reduce(r->send, r->recv, r->bytes / sizeof(float), TUTTI_F32, TUTTI_SUM, r->comm, NULL);
    }
    return error;
}

static void naive_barrier(struct rank *r)
{
    if (r->crowded)
        bare_central(r->bare, r->size, ++r->nth[0]);
    else
        bare_flags(r->bare, r->me, r->size, ++r->nth[0], false);
}

/* In blocks that stay in the first cache, in rank order. */
static void naive_fold(float *to, const char *from, size_t stride, int n, size_t count)
{
    for (size_t at = 0; at < count; at += BLOCK) {
        size_t some = count - at < BLOCK ? count - at : BLOCK;
        memcpy(to + at, (const float *)(const void *)from + at, some * sizeof *to);
        for (int p = 1; p < n; p++) {
            const float *x = (const float *)(const void *)(from + (size_t)p * stride) + at;
            for (size_t i = 0; i < some; i++)
                to[at + i] += x[i];
        }
    }
}

/* Everybody copies its data into shared memory; a barrier; everybody folds everything. Where there is room, two areas take turns and
   one barrier is enough; else a second one keeps the next operation off. */
static int run_naive(struct rank *r, uint64_t times)
{
    size_t stride = r->room / SETS_LEAST, count = r->bytes / sizeof(float);
    bool twice = 2 * r->bytes <= stride;
    for (uint64_t i = 0; i < times; i++) {
        if (i)
            rewrite(r);
        char *area = r->shared + (twice && (r->nth[0] & 1) ? stride / 2 : 0);
        memcpy(area + (size_t)r->me * stride, r->send, r->bytes);
        naive_barrier(r);
        naive_fold((float *)(void *)r->recv, area, stride, r->size, count);
        if (!twice)
            naive_barrier(r);
    }
    return 0;
}

static int run_copy(struct rank *r, uint64_t times)
{
    for (uint64_t i = 0; i < times; i++) {
        if (i)
            rewrite(r);
        memcpy(r->recv, r->send, r->bytes);
    }
    return 0;
}

static const struct contender contenders[] = {
    [TUTTI] = { "tutti", "tutti_all_reduce, f32, sum", NULL, 0, false, 0, 0, run_tutti, rewrite },
    [NAIVE] = { "naive", "copy in, barrier, everybody folds all", NULL, 0, false, 0, 0, run_naive, rewrite },
    [COPY] = { "memcpy", "each rank copies as many bytes, at the same time", NULL, 0, false, 0, 0, run_copy, rewrite },
    [COUNT] = { 0 }
};

static struct plot *plot(struct report *report, const struct team *team, const char *of, enum unit unit, const char *note)
{
    struct plot *p = report_plot(report);
    snprintf(p->title, sizeof p->title, "All_reduce of %d ranks%s: %s", team->ranks, team->crowded ? " on fewer CPUs" : "", of);
    snprintf(p->note, sizeof p->note, "%s", note);
    snprintf(p->x_title, sizeof p->x_title, "bytes of each rank");
    snprintf(p->y_title, sizeof p->y_title, "%s", of);
    p->x_scale = p->y_scale = SCALE_LOG;
    p->x_unit = UNIT_BYTES;
    p->y_unit = unit;
    for (int i = 0; i < COUNT; i++)
        plot_curve(p, contenders[i].name, i)->marks = true;
    return p;
}

static void tell(struct report *report, struct table *table, int time, int rate, const struct team *team, size_t bytes,
                 const struct measured *m)
{
    char text[7][32];
    const char *cells[7];
    double ns[COUNT];
    for (int i = 0; i < COUNT; i++) {
        struct figure *f = report_figure(report, "all_reduce", contenders[i].name, UNIT_NS, team->ranks);
        figure_single(f, &m[i].single);
        f->bytes = bytes;
        ns[i] = f->value = series_median(&m[i].rounds);
        f->ratio = series_ratio(&m[i].rounds, &m[NAIVE].rounds);
        snprintf(f->against, sizeof f->against, "%s", contenders[NAIVE].name);
        curve_point(&report->plots[time].curves[i], (double)bytes, ns[i]);
        curve_point(&report->plots[rate].curves[i], (double)bytes, (double)bytes / ns[i] * 1e9);
        cells[i + 1] = unit_text(text[i + 1], sizeof text[0], UNIT_NS, ns[i]);
    }
    cells[0] = unit_text(text[0], sizeof text[0], UNIT_BYTES, (double)bytes);
    cells[4] = unit_text(text[4], sizeof text[0], UNIT_RATIO, series_ratio(&m[NAIVE].rounds, &m[TUTTI].rounds).median);
    cells[5] = unit_text(text[5], sizeof text[0], UNIT_RATIO, series_ratio(&m[TUTTI].rounds, &m[COPY].rounds).median);
    cells[6] = unit_text(text[6], sizeof text[0], UNIT_RATE, (double)bytes / ns[TUTTI] * 1e9);
    table_row(table, false, cells);
}

static void compare(struct report *report, const struct perf_options *o, int k)
{
    static const char *const heads[] = { "bytes", "tutti", "naive", "memcpy", "naive/tutti", "tutti/memcpy", "tutti" };
    static const int width[] = { 9, 10, 10, 10, 13, 13, 12 };
    struct team team;
    int sizes = 0, done = 0;
    for (size_t bytes = 4; bytes <= o->most; bytes *= 4)
        sizes++;
    team_open(&team, o->ranks[k], contenders, (size_t)o->ranks[k] * o->most, SETS_LEAST * o->most);
    struct table *table = report_table(report, 7, heads, width);
    snprintf(table->title, sizeof table->title, "%d ranks, %s, f32, sum, %s", team.ranks, team.crowded ? "more than CPUs" : "a CPU each",
             o->hot ? "buffers hot" : "buffers rotated from 1 MiB on");
    snprintf(table->note, sizeof table->note, "Time until the last rank is through; up to 1 KiB of one of many back to back, each with its "
             "data rewritten; above, started together. Ratios are medians of the ratios of rounds. naive/tutti: above 1, tutti is faster.");
    plot(report, &team, "time", UNIT_NS, "Lower is better. memcpy is the floor: every rank copies as many bytes.");
    plot(report, &team, "bytes a second", UNIT_RATE, "Higher is better. Bytes of one rank over the time of the operation.");
    for (size_t bytes = 4; bytes <= o->most; bytes *= 4, done++) {
        struct measured m[CONTENDERS_MAX] = { 0 };
        struct effort e = { o->seconds / sizes, o->quick, o->hot, bytes, (k + (double)done / sizes) / o->lists, 1.0 / sizes / o->lists };
        measure(&team, &e, m);
        tell(report, table, report->plot_count - 2, report->plot_count - 1, &team, bytes, m);
        measured_free(m, COUNT);
    }
    team_close(&team);
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
