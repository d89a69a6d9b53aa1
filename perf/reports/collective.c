/* One operation after the other, size after size, all contenders in turns at each: the library from
 * private memory and from the arena, its peers, and the floor, a bare barrier and the copies that
 * no system can do without. All operations share the jobs: to start them takes longer than to
 * measure a size. */
#include "reports/question.h"
#include "reports/memory_budget.h"
#include "reports/tutti_operations.h"

#include "harness/limit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TUTTI, ARENA, NAIVE, FLOOR, OPENMPI, MPICH, GLOO, TORCH, COUNT };
/* tutti, naive, floor share one */
enum { BLOCK = 2048, NAIVE_MOST = 64 << 20, GLOO_MOST = 16 << 20, JOBS = COUNT - 2 };

static void naive_barrier(struct rank *r)
{
    if (r->crowded)
        bare_central(r->bare, r->size, ++r->nth[0], true);
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

/* What one would write without a library. Everybody copies its data into shared memory; a barrier;
   everybody folds everything. Two areas take turns, so that one barrier is enough. */
static int run_naive(struct rank *r, uint64_t times)
{
    size_t count = r->bytes / sizeof(float);
    for (uint64_t i = 0; i < times; i++) {
        if (i)
            operation_rewrite(r);
        char *area = r->shared + (r->nth[0] & 1) * (size_t)r->size * r->bytes;
        memcpy(area + (size_t)r->me * r->bytes, r->send, r->bytes);
        naive_barrier(r);
        naive_fold((float *)(void *)r->recv, area, r->bytes, r->size, count);
    }
    return 0;
}

/* To read or write two bytes costs what copying one does. */
static int run_floor(struct rank *r, uint64_t times)
{
    size_t bytes = (size_t)(operation_moves(r->op, r->size, r->bytes) / 2 / r->size);
    for (uint64_t i = 0; i < times; i++) {
        if (i)
            operation_rewrite(r);
        memcpy(r->recv, r->send, bytes);
        naive_barrier(r);
    }
    return 0;
}

/* not `operation_rewrite`: there is no result to check */
static void rewrite_floor(struct rank *r) { operation_rewrite(r); }

static const struct setting in_arena = { .arena = true };
static const struct contender contenders[] = {
    [TUTTI] = {
        "tutti", "from private memory", NULL, 0, false, 0, 0,
        operation_run, operation_rewrite, OP_NONE
    },
    [ARENA] = {
        "tutti arena", "from memory of tutti_alloc", &in_arena, 0, false, 0, 0, operation_run,
        operation_rewrite, OP_NONE
    },
    [NAIVE] = {
        "naive", "copy in, barrier, everybody folds all", NULL, 0, false, 0, NAIVE_MOST, run_naive,
        operation_rewrite, OP_ALL_REDUCE
    },
    [FLOOR] = {
        "floor", "a bare barrier, and copies of the bytes that must move", NULL, 0, false, 0, 0,
        run_floor, rewrite_floor, OP_NONE
    },
    PEER("Open MPI", "openmpi"), PEER("MPICH", "mpich"), PEER_UP_TO("Gloo", "gloo", GLOO_MOST),
    PEER_UP_TO("torch gloo", "torch", GLOO_MOST), [COUNT] = { 0 }
};
static const char *const heads[] = {
    "tutti", "arena", "naive", "floor", "OpenMPI", "MPICH", "Gloo", "torch"
};
static const int hues[] = { 0, 5, 8, 7, 1, 2, 3, 4 };

/* ---- what is said of it ---- */

struct page { struct table *table; int time, rate; };      /* the numbers of its plots */

static int plot(struct report *report, const struct team *team, enum operation_id op,
                const char *how, const char *of, enum unit unit, const char *note)
{
    struct plot *p = report_plot(report);
    snprintf(p->title, sizeof p->title, "%s of %d ranks%s%s: %s", operations[op].title, team->ranks,
             team->crowded ? " on fewer CPUs" : "", how, of);
    snprintf(p->note, sizeof p->note, "%s", note);
    snprintf(p->x_title, sizeof p->x_title, "%s", operations[op].help);
    snprintf(p->y_title, sizeof p->y_title, "%s", of);
    p->x_scale = p->y_scale = SCALE_LOG;
    p->x_unit = UNIT_BYTES;
    p->y_unit = unit;
    for (int i = 0; i < COUNT; i++)
        plot_curve(p, contenders[i].name, hues[i])->marks = true;
    return report->plot_count - 1;
}

static struct page page(struct report *report, const struct team *team, enum operation_id op,
                        bool work, bool hot)
{
    const char *columns[COLUMNS_MAX] = { "bytes" }, *how = work ? ", started and waited for" : "";
    int width[COLUMNS_MAX] = { 8 };
    for (int i = 0; i < COUNT; i++) {
        columns[i + 1] = heads[i];
        width[i + 1] = 8;
    }
    columns[COUNT + 1] = "x MPI";
    width[COUNT + 1] = 6;
    struct page p = { report_table(report, COUNT + 2, columns, width), 0, 0 };
    snprintf(p.table->title, sizeof p.table->title, "%s, %d ranks, %s%s%s", operations[op].title,
             team->ranks, team->crowded ? "more than CPUs" : "a CPU each", how,
             hot ? ", buffers hot" : "");
    snprintf(p.table->note, sizeof p.table->note,
             "Bytes: %s; f32. Time until the last rank is through. x MPI: the faster of both / "
             "tutti. "
             "Floor: a bare barrier and copies of the %.3g bytes for each of a message that must "
             "be read or written.",
             operations[op].help, operation_moves(op, team->ranks, 1));
    p.time = plot(report, team, op, how, "time", UNIT_NS,
                  "Lower is better. The floor is a bare barrier and the copies that must be.");
    p.rate = plot(report, team, op, how, "bytes a second", UNIT_RATE,
                  "Higher is better. Bytes that must be read or written, over the time.");
    return p;
}

static void tell(struct report *report, const struct page *p, const struct team *team,
                 enum operation_id op, bool work, size_t bytes, const struct measured *m)
{
    char text[COUNT + 2][32], what[48];
    const char *cells[COUNT + 2];
    double best = 0;
    snprintf(what, sizeof what, "%s%s", operations[op].name, work ? ".work" : "");
    cells[0] = unit_short(text[0], sizeof text[0], UNIT_BYTES, (double)bytes);
    for (int i = 0; i < COUNT; i++) {
        cells[i + 1] = "-";
        if (!m[i].in || !m[i].rounds.n)
            continue;
        struct figure *f = report_figure(report, what, contenders[i].name, UNIT_NS, team->ranks);
        figure_single(f, &m[i].single);
        figure_rounds(f, &m[i].rounds);
        f->bytes = bytes;
        f->ratio = series_ratio(&m[i].rounds, &m[TUTTI].rounds);
        snprintf(f->against, sizeof f->against, "%s", contenders[TUTTI].name);
        curve_point(&report->plots[p->time].curves[i], (double)bytes, f->value);
        curve_point(&report->plots[p->rate].curves[i], (double)bytes,
                    operation_moves(op, team->ranks, bytes) / f->value * 1e9);
        cells[i + 1] = unit_text(text[i + 1], sizeof text[0], UNIT_NS, f->value);
        if ((i == OPENMPI || i == MPICH) && (best == 0 || f->ratio.median < best))
            best = f->ratio.median;
    }
    cells[COUNT + 1] = best > 0 ? unit_text(text[COUNT + 1], sizeof text[0], UNIT_RATIO, best)
                                : "-";
    table_row(p->table, false, cells);
}

/* Which operations of all that were asked for a contender has not, [1] as work: a line for each,
 * and not one for each operation. */
struct lacks { unsigned operations[2][COUNT]; };

static void say_lacks(struct report *report, const struct lacks *lacks)
{
    for (int work = 0; work < 2; work++)
        for (int i = 0; i < COUNT; i++) {
            char list[160] = "";
            for (int op = OP_BARRIER; op < OPS; op++)
                if (lacks->operations[work][i] >> op & 1)
                    snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s",
                             *list ? ", " : "", operations[op].name);
            if (*list)
                report_remark(report, false, "%s has no %s%s", contenders[i].name, list,
                              work ? " as work" : "");
        }
}

enum { SIZES_MOST = 15 };                          /* 4 B to 1 GiB */

/* All that is measured of one operation, of one size: a cell. */
struct cells {
    const struct question *part;
    struct team *team;
    const struct ask_sizes *sizes;
    size_t most;
    int lines, columns, passes;
    struct measured *at;
    double *took;                      /* the last visit of each cell, s; 0: none */
};

static size_t step_of(const struct ask_sizes *s) { return s->brief ? 16 : 4; }
static int forms(const struct ask_sizes *s) { return s->work ? 2 : 1; }

static struct measured *cell_at(const struct cells *c, int line, int column)
{
    return &c->at[(line * c->columns + column) * COUNT];
}

static void cells_open(struct cells *c)
{
    c->lines = c->sizes->count * forms(c->sizes);
    c->passes = c->part->options->quick && c->sizes->passes > 2 ? 2 : c->sizes->passes;
    for (size_t bytes = c->sizes->least; bytes <= c->most && c->columns < SIZES_MOST;
         bytes *= step_of(c->sizes))
        c->columns++;
    c->at = calloc((size_t)(c->lines * c->columns * COUNT) + 1, sizeof *c->at);
    c->took = calloc((size_t)(c->lines * c->columns) + 1, sizeof *c->took);
    if (!c->at || !c->took) {
        perror("collective");
        abort();
    }
}

static void cells_measure(const struct cells *c, int pass, int line)
{
    const struct question *p = c->part;
    int all = c->passes * c->lines * c->columns;
    double share = p->share / all;
    size_t bytes = c->sizes->least;
    for (int column = 0; column < c->columns; column++, bytes *= step_of(c->sizes)) {
        int done = (pass * c->lines + line) * c->columns + column;
        struct effort e = {
            p->seconds / all, p->options->quick, p->options->hot, bytes, p->done + share * done,
            share, c->sizes->operations[line / forms(c->sizes)], line % forms(c->sizes), c->passes
        };
        measure(c->team, &e, cell_at(c, line, column));
    }
}

/* Of all operations the small sizes first: what there is no time for are the largest of all. A
 * cell's share of the time is by its weight; the first time goes into checks and warming up, too,
 * and has two shares of a pass. */
enum { WEIGHT_BYTES = 1 << 20, WEIGHT_MOST = 8 };

static double weight(size_t bytes)
{
    double w = 1 + (double)bytes / WEIGHT_BYTES / 2;
    return w < WEIGHT_MOST ? w : WEIGHT_MOST;
}

static double cell_visit(const struct cells *c, int line, int column, size_t bytes, double seconds)
{
    const struct question *p = c->part;
    double began = stamp_seconds();
    struct effort e = {
        seconds, p->options->quick, p->options->hot, bytes, 0, 0,
        c->sizes->operations[line / forms(c->sizes)], line % forms(c->sizes), c->passes
    };
    measure(c->team, &e, cell_at(c, line, column));
    return stamp_seconds() - began;
}

static void cells_sweep(const struct cells *c, double until, double end)
{
    double left = 0;
    size_t bytes = c->sizes->least;
    for (int column = 0; column < c->columns; column++, bytes *= step_of(c->sizes))
        left += c->lines * weight(bytes);
    bytes = c->sizes->least;
    for (int column = 0; column < c->columns; column++, bytes *= step_of(c->sizes))
        for (int line = 0; line < c->lines; line++, left -= weight(bytes)) {
            double now = stamp_seconds(), seconds = (until - now) * weight(bytes) / left,
                   *took = &c->took[line * c->columns + column];
            if (now + *took < end)
                *took = cell_visit(c, line, column, bytes, seconds > 0 ? seconds : 0);
        }
}

/* A pass is worth its warming up, where a cell has a quarter of a second. */
static void cells_limited(struct cells *c, double end)
{
    enum { PASS_MS = 250 };
    double now = stamp_seconds(), all = c->lines * c->columns * (PASS_MS / 1e3);
    int missing = 0, passes = (int)((end - now) / all), cells = c->lines * c->columns;
    c->passes = passes < 1 ? 1 : passes < c->passes ? passes : c->passes;
    for (int pass = 0; pass < c->passes; pass++) {
        double share = pass ? 1.0 / (c->passes - pass) : 2.0 / (c->passes + 1);
        now = stamp_seconds();
        cells_sweep(c, now + (end - now) * share, end);
    }
    for (int i = cells - 1; i >= 0; i--)
        if (c->took[i] <= 0) {
            size_t bytes = c->sizes->least, *least = &c->part->report->no_time[c->part->ranks];
            for (int column = i % c->columns; column > 0; column--)
                bytes *= step_of(c->sizes);
            *least = *least && *least < bytes ? *least : bytes;
            missing++;
        }
    if (missing)
        report_remark(c->part->report, false,
                      "%d ranks%s%s: no time for %d of %d sizes of operations, the largest",
                      c->part->ranks, c->lines == 1 ? ", " : "",
                      c->lines == 1 ? operations[c->sizes->operations[0]].name : "", missing,
                      cells);
}

static void cells_tell(const struct cells *c, int line, struct lacks *lacks)
{
    enum operation_id op = c->sizes->operations[line / forms(c->sizes)];
    bool work = line % forms(c->sizes);
    struct page to = page(c->part->report, c->team, op, work, c->part->options->hot);
    size_t bytes = c->sizes->least;
    for (int column = 0; column < c->columns; column++, bytes *= step_of(c->sizes)) {
        struct measured *m = cell_at(c, line, column);
        tell(c->part->report, &to, c->team, op, work, bytes, m);
        remark_systems(c->part->report, c->team, m);
        for (int i = 0; i < COUNT; i++)
            lacks->operations[work][i] |= m[i].lacks ? 1u << op : 0;
        measured_free(m, COUNT);
    }
}

void ask_collective(const struct question *p, const struct ask_sizes *s)
{
    struct team team;
    struct lacks lacks = { { { 0 } } };
    double end = stamp_seconds() + p->seconds;
    size_t most = budget_most(p, s, JOBS), naive = most < NAIVE_MOST ? most : NAIVE_MOST;
    struct cells cells = { p, &team, s, most, 0, 0, 0, NULL, NULL };
    cells_open(&cells);
    team_open(&team,
              &(struct team_plan){ .ranks = p->ranks,
                                   .contenders = contenders,
                                   .system = &tutti_system,
                                   .without = p->options->without,
                                   .shared_bytes = 2 * (size_t)p->ranks * naive,
                                   .pool_bytes = budget_pool(s, p->ranks, most),
                                   .done = p->done });
    if (limit_set())
        cells_limited(&cells, end);
    for (int pass = 0; pass < cells.passes && !limit_set(); pass++)
        for (int line = 0; line < cells.lines; line++)
            cells_measure(&cells, pass, line);
    for (int line = 0; line < cells.lines; line++)
        cells_tell(&cells, line, &lacks);
    free(cells.at);
    free(cells.took);
    team_close(&team);
    say_lacks(p->report, &lacks);
}
