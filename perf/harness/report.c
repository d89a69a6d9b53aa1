/* A run's findings are a few hundred small records; they are collected first and written at the
 * end, so that nothing is printed while something is measured. */
#include "harness/report.h"

#include "harness/page.h"
#include "harness/progress.h"
#include "harness/stamp.h"
#include "harness/write.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *grown(void *at, int count, size_t size)
{
    if (count & (count - 1))
        return at;
    at = realloc(at, (count ? 2 * (size_t)count : 1) * size);
    if (!at) {
        perror("report");
        abort();
    }
    return at;
}

void report_begin(struct report *r, const struct perf_program *program)
{
    *r = (struct report){ .program = program };
    machine_describe(&r->machine);
}

void report_open(struct report *r, const struct perf_program *program, struct perf_options *options,
                 int argc, char **argv)
{
    perf_options(options, program, argc, argv);
    stamp_calibrate();
    report_begin(r, program);
}

struct figure *report_figure(struct report *r, const char *what, const char *contender,
                             enum unit unit, int ranks)
{
    r->figures = grown(r->figures, r->figure_count, sizeof *r->figures);
    struct figure *f = &r->figures[r->figure_count++];
    *f = (struct figure){ .unit = unit, .ranks = ranks };
    snprintf(f->what, sizeof f->what, "%s", what);
    snprintf(f->contender, sizeof f->contender, "%s", contender);
    return f;
}

void figure_single(struct figure *f, const struct series *single)
{
    struct series s = { 0 };
    for (size_t i = 0; i < single->n; i++)
        series_add(&s, single->at[i]);
    series_sort(&s);
    f->samples = s.n;
    f->least = series_sorted_quantile(&s, 0);
    f->median = f->value = series_sorted_quantile(&s, 0.5);
    f->p99 = series_sorted_quantile(&s, 0.99);
    f->most = series_sorted_quantile(&s, 1);
    series_free(&s);
}

void figure_rounds(struct figure *f, const struct series *rounds)
{
    f->rounds = (struct series){ 0 };
    for (size_t i = 0; i < rounds->n; i++)
        series_add(&f->rounds, rounds->at[i]);
    f->value = series_median(rounds);
}

const struct figure *report_find(const struct report *r, const char *what, const char *contender,
                                 int ranks, size_t bytes)
{
    for (int i = r->figure_count - 1; i >= 0; i--) {
        const struct figure *f = &r->figures[i];
        if (f->ranks == ranks && f->bytes == bytes && !strcmp(f->what, what)
            && !strcmp(f->contender, contender))
            return f;
    }
    return NULL;
}

struct table *report_table(struct report *r, int columns, const char *const heads[],
                           const int width[])
{
    r->tables = grown(r->tables, r->table_count, sizeof *r->tables);
    struct table *t = &r->tables[r->table_count++];
    *t = (struct table){ .columns = columns };
    for (int i = 0; i < columns; i++) {
        t->width[i] = width[i];
        snprintf(t->heads[i], sizeof t->heads[i], "%s", heads[i]);
    }
    return t;
}

void table_row(struct table *t, bool strong, const char *const cells[])
{
    t->cells = grown(t->cells, t->rows, sizeof *t->cells);
    t->strong = grown(t->strong, t->rows, sizeof *t->strong);
    for (int i = 0; i < t->columns; i++)
        snprintf(t->cells[t->rows][i].text, sizeof t->cells[0][0].text, "%s", cells[i]);
    t->strong[t->rows++] = strong;
}

struct plot *report_plot(struct report *r)
{
    r->plots = grown(r->plots, r->plot_count, sizeof *r->plots);
    struct plot *p = &r->plots[r->plot_count++];
    *p = (struct plot){ 0 };
    return p;
}

struct plot *report_distribution(struct report *r, const char *title, const char *x_title,
                                 const char *y_title)
{
    struct plot *p = report_plot(r);
    snprintf(p->title, sizeof p->title, "%s", title);
    snprintf(p->note, sizeof p->note,
             "Which share took at most so long. Further left is better; median beside the name.");
    snprintf(p->x_title, sizeof p->x_title, "%s", x_title);
    snprintf(p->y_title, sizeof p->y_title, "%s", y_title);
    p->x_scale = SCALE_LOG;
    p->y_unit = UNIT_SHARE;
    return p;
}

struct curve *plot_curve(struct plot *p, const char *name, int hue)
{
    p->curves = grown(p->curves, p->count, sizeof *p->curves);
    struct curve *c = &p->curves[p->count++];
    *c = (struct curve){ .hue = hue };
    snprintf(c->name, sizeof c->name, "%s", name);
    return c;
}

void curve_point(struct curve *c, double x, double y)
{
    c->points = grown(c->points, (int)c->n, sizeof *c->points);
    c->points[c->n][0] = x;
    c->points[c->n++][1] = y;
}

void curve_cumulative(struct curve *c, const struct series *single)
{
    enum { STEPS = 240 };
    struct series s = { 0 };
    for (size_t i = 0; i < single->n; i++)
        series_add(&s, single->at[i]);
    series_sort(&s);
    /* The last percent would stretch the axis until nothing else can be seen; the
     * tables have it. */
    for (int i = 0; i <= STEPS && s.n; i++)
        curve_point(c, series_sorted_quantile(&s, 0.99 * i / STEPS), 99.0 * i / STEPS);
    series_free(&s);
}

void report_judge(struct report *r, const struct promise *promise)
{
    r->promises = grown(r->promises, r->promise_count, sizeof *r->promises);
    struct promise *p = &r->promises[r->promise_count++];
    *p = *promise;
    p->kept = p->measured && (p->at_least ? p->value >= p->limit : p->value <= p->limit);
}

void report_promise(struct report *r, const char *what, double value, double limit, enum unit unit)
{
    struct promise p = { .value = value, .limit = limit, .unit = unit, .measured = true };
    snprintf(p.what, sizeof p.what, "%s", what);
    report_judge(r, &p);
}

void report_remark(struct report *r, bool bad, const char *format, ...)
{
    struct remark remark = { .bad = bad };
    va_list args;
    va_start(args, format);
    vsnprintf(remark.text, sizeof remark.text, format, args);
    va_end(args);
    for (int i = 0; i < r->remark_count; i++)
        if (!strcmp(r->remarks[i].text, remark.text))
            return;
    r->remarks = grown(r->remarks, r->remark_count, sizeof *r->remarks);
    r->remarks[r->remark_count++] = remark;
}

static void three_digits(char *to, size_t room, double value, const char *unit)
{
    snprintf(to, room, "%.*f%s", value < 9.995 ? 2 : value < 99.95 ? 1 : 0, value, unit);
}

static const char *unit_time(char *to, size_t room, double ns)
{
    if (ns < 999.5)
        snprintf(to, room, ns < 9.95 ? "%.1f ns" : "%.0f ns", ns);
    else if (ns < 999.5e3)
        three_digits(to, room, ns / 1e3, " us");
    else if (ns < 999.5e6)
        three_digits(to, room, ns / 1e6, " ms");
    else
        three_digits(to, room, ns / 1e9, " s");
    return to;
}

const char *unit_text(char *to, size_t room, enum unit unit, double v)
{
    static const char *const bytes[] = { " B", " KiB", " MiB", " GiB" };
    switch (unit) {
    case UNIT_NS: return unit_time(to, room, v);
    case UNIT_BYTES: {
        int i = 0;
        for (; v >= 1024 && i < 3; i++)
            v /= 1024;
        snprintf(to, room, "%.4g%s", v, bytes[i]);
        break;
    }
    case UNIT_RATE:
        if (v < 999.5e6)
            three_digits(to, room, v / 1e6, " MB/s");
        else
            three_digits(to, room, v / 1e9, " GB/s");
        break;
    case UNIT_RATIO:
        if (v < 9999.5)
            three_digits(to, room, v, "");
        else
            snprintf(to, room, "%.0fk", v / 1e3);
        break;
    case UNIT_SHARE: snprintf(to, room, "%.3g %%", v); break;
    case UNIT_COUNT: snprintf(to, room, "%.0f", v); break;
    }
    return to;
}

const char *unit_short(char *to, size_t room, enum unit unit, double value)
{
    unit_text(to, room, unit, value);
    size_t point = strcspn(to, ".");
    if (!to[point])
        return to;
    size_t end = point + 1 + strspn(to + point + 1, "0123456789"), keep = end;
    while (to[keep - 1] == '0')
        keep--;
    keep -= keep == point + 1;
    memmove(to + keep, to + end, strlen(to + end) + 1);
    return to;
}

static int write_file(const struct report *r, const char *path,
                      void (*writer)(FILE *, const struct report *))
{
    FILE *f = strcmp(path, "-") ? fopen(path, "w") : stdout;
    if (!f) {
        fprintf(stderr, "perf: cannot write %s: %s\n", path, strerror(errno));
        return -1;
    }
    writer(f, r);
    return f == stdout ? fflush(f) : fclose(f);
}

int report_end(struct report *r, const struct perf_options *o)
{
    int status = 0;
    progress_clear();
    snprintf(r->machine.command, sizeof r->machine.command, "%s", o->command);
    if (o->busy >= MACHINE_BUSY)
        report_remark(r, false, "the machine was busy when this began: others had %.0f %% of the "
                      "time of its CPUs", o->busy * 100);
    if (o->csv)
        write_csv(stdout, r);
    else
        write_tables(stdout, r);
    if (o->json && write_file(r, o->json, write_json) != 0)
        status = 2;
    if (o->html && write_file(r, o->html, write_page) != 0)
        status = 2;
    for (int i = 0; i < r->promise_count; i++)
        if (o->strict && !o->quick && r->promises[i].measured && !r->promises[i].kept
            && status == 0)
            status = 1;
    for (int i = 0; i < r->remark_count; i++)
        if (o->strict && !o->quick && r->remarks[i].bad && status == 0)
            status = 1;
    return status;
}
