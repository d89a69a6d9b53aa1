/* The library alone, for whoever wants to know what happens when there is more of something: more
 * ranks, at four sizes, and more bytes, for one number of ranks. Every figure is the median of
 * single operations, from the first start to the last end: where the other programs take batches
 * for what is small the curve would have a step of the bench's own. Each number of ranks has one
 * job, whose pools are as large as the largest message that there is memory for. */
#include "reports/curve_kinks.h"
#include "reports/question.h"
#include "reports/memory_budget.h"
#include "reports/tutti_operations.h"

#include <stdio.h>

static const int rank_steps[] = { 1, 2, 4, 8, 16, 32, 64 };
static const size_t size_steps[] = { 4, 1 << 10, 64 << 10, 1 << 20 };
static const enum operation_id moving[] = { OP_ALL_REDUCE, OP_BROADCAST, OP_ALL_GATHER };
enum {
    RANKS = sizeof rank_steps / sizeof *rank_steps,
    SIZES = sizeof size_steps / sizeof *size_steps,
    MOVING = sizeof moving / sizeof *moving
};
enum { LINES = 1 + MOVING * SIZES, POINTS_MOST = 16, QUICK_RANKS = 3, QUICK_SIZES = 2 };

static const struct contender contenders[] = {
    { "tutti", "from private memory", NULL, 0, false, 0, 0, operation_run, operation_rewrite,
      OP_NONE },
    { 0 }
};

/* A curve over ranks: the barrier, or an operation of one size. */
struct line { enum operation_id op; size_t bytes; };

static struct line line_of(int i)
{
    return i == 0 ? (struct line){ OP_BARRIER, 0 }
                  : (struct line){ moving[(i - 1) / SIZES], size_steps[(i - 1) % SIZES] };
}

static void open_team(struct team *team, const struct question *p, size_t pool)
{
    team_open(team,
              &(struct team_plan){ .ranks = p->ranks,
                                   .contenders = contenders,
                                   .system = &tutti_system,
                                   .shared_bytes = 4096,
                                   .pool_bytes = pool,
                                   .done = p->done });
}

/* `before`: the same operation of fewer bytes. What would take too long by that is left out. */
static struct kink_point point(const struct question *p, struct team *team, struct line what,
                               double at, const struct kink_point *before, size_t fewer)
{
    struct measured m[CONTENDERS_MAX] = { 0 };
    struct effort e = {
        p->seconds, p->options->quick, p->options->hot, what.bytes,
        p->done, p->share, what.op, false, 1
    };
    struct kink_point found = { .at = at };
    double longest = p->options->seconds / 20 * 1e9,
           guess = before && before->count ? before->median * (double)what.bytes / (double)fewer
                                           : 0;
    char bytes[32], time[32];
    if (before && (!before->count || guess > longest)) {
        if (before->count)
            report_remark(p->report, false,
                          "%s of %s, %d ranks is left out: it would take some %s; more --seconds "
                          "measure it",
                          operations[what.op].name,
                          unit_text(bytes, sizeof bytes, UNIT_BYTES, (double)what.bytes), p->ranks,
                          unit_text(time, sizeof time, UNIT_NS, guess));
        return found;
    }
    measure(team, &e, m);
    if (m[0].in) {
        struct figure *f = report_figure(p->report, operations[what.op].name, "tutti", UNIT_NS,
                                         p->ranks);
        figure_single(f, &m[0].single);
        f->bytes = what.bytes;
        found = kink_point(at, &m[0].single);
    }
    remark_systems(p->report, team, m);
    measured_free(m, 1);
    return found;
}

static struct plot *time_plot(struct report *r, const char *x_title, enum unit unit)
{
    struct plot *plot = report_plot(r);
    snprintf(plot->note, sizeof plot->note,
             "Lower is better. Until the last rank is through, median.");
    snprintf(plot->x_title, sizeof plot->x_title, "%s", x_title);
    snprintf(plot->y_title, sizeof plot->y_title, "time");
    plot->x_unit = unit;
    plot->x_scale = plot->y_scale = SCALE_LOG;
    return plot;
}

/* Points that were not measured have no place in a curve. */
static int draw(struct plot *plot, const char *name, int hue, struct kink_point *points, int count)
{
    struct curve *c = plot_curve(plot, name, hue);
    int n = 0;
    c->marks = true;
    for (int i = 0; i < count; i++)
        if (points[i].count) {
            points[n++] = points[i];
            curve_point(c, points[i].at, points[i].median);
        }
    return n;
}

/* ---- over ranks ---- */

static const char *line_name(char *to, size_t room, struct line what)
{
    char size[32];
    snprintf(to, room, "%s%s%s", operations[what.op].name, what.bytes ? " " : "",
             what.bytes ? unit_text(size, sizeof size, UNIT_BYTES, (double)what.bytes) : "");
    return to;
}

static void rank_table(struct report *r, struct kink_point points[LINES][RANKS])
{
    const char *heads[RANKS + 1] = { "ranks" };
    char text[RANKS + 1][32], head[RANKS][8];
    int width[RANKS + 1] = { -20 };
    for (int k = 0; k < RANKS; k++) {
        snprintf(head[k], sizeof head[k], "%d", rank_steps[k]);
        heads[k + 1] = head[k];
        width[k + 1] = 8;
    }
    struct table *t = report_table(r, RANKS + 1, heads, width);
    snprintf(t->title, sizeof t->title, "More and more ranks, %d CPU%s", r->machine.cpus,
             r->machine.cpus == 1 ? "" : "s");
    snprintf(t->note, sizeof t->note,
             "Median of single operations, until the last rank is through.");
    for (int i = 0; i < LINES; i++) {
        const char *cells[RANKS + 1] = { line_name(text[RANKS], sizeof text[0], line_of(i)) };
        bool any = false;
        for (int k = 0; k < RANKS; k++) {
            cells[k + 1] = points[i][k].count
                ? unit_text(text[k], sizeof text[k], UNIT_NS, points[i][k].median)
                : "-";
            any |= points[i][k].count > 0;
        }
        if (any)
            table_row(t, false, cells);
    }
}

static void rank_curves(struct report *r, struct kink_point points[LINES][RANKS])
{
    struct plot *plot = NULL;
    int found = 0;
    for (int i = 0; i < LINES; i++) {
        struct line what = line_of(i);
        char name[48];
        if (i < 2 || (i - 1) % SIZES == 0) {
            plot = time_plot(r, "ranks", UNIT_COUNT);
            snprintf(plot->title, sizeof plot->title, "%s, more and more ranks on %d CPUs",
                     operations[what.op].title, r->machine.cpus);
        }
        int n = draw(plot, line_name(name, sizeof name, what), i == 0 ? 0 : (i - 1) % SIZES,
                     points[i], RANKS);
        found += kink_ranks(r, what.op, what.bytes, points[i], n);
    }
    if (!found)
        report_remark(r, false, "no kink over ranks");
}

void ask_growth_ranks(const struct question *p)
{
    struct kink_point points[LINES][RANKS] = { { { 0 } } };
    int steps = p->options->quick ? QUICK_RANKS : RANKS;
    size_t most = size_steps[(p->options->quick ? QUICK_SIZES : SIZES) - 1];
    for (int k = 0; k < steps; k++) {
        struct question all = {
            p->report, p->options, rank_steps[k], p->seconds / steps / LINES,
            p->done + p->share * k / steps, p->share / steps / LINES
        };
        struct ask_sizes fits[MOVING];
        struct team team;
        size_t pool = 0;
        for (int o = 0; o < MOVING; o++) {
            fits[o] = (struct ask_sizes){ &moving[o], 1, 4, most, false, false, 1 };
            fits[o].most = budget_most(&all, &fits[o], 1);
            size_t room = budget_pool(&fits[o], all.ranks, fits[o].most);
            pool = room > pool ? room : pool;
        }
        open_team(&team, &all, pool);
        for (int i = 0; i < LINES; i++) {
            struct line what = line_of(i);
            bool smallest = i == 0 || what.bytes == size_steps[0];
            struct question one = all;
            one.done += all.share * i;
            if (i == 0 || what.bytes <= fits[(i - 1) / SIZES].most)
                points[i][k] = point(&one, &team, what, rank_steps[k],
                                     smallest ? NULL : &points[i - 1][k],
                                     smallest ? 0 : line_of(i - 1).bytes);
        }
        team_close(&team);
    }
    rank_table(p->report, points);
    rank_curves(p->report, points);
}

/* ---- over bytes ---- */

static void size_table(struct report *r, int ranks, struct kink_point points[MOVING][POINTS_MOST],
                       int sizes)
{
    const char *heads[1 + 2 * MOVING] = { "bytes" };
    int width[1 + 2 * MOVING] = { 8 };
    for (int o = 0; o < MOVING; o++) {
        heads[1 + 2 * o] = operations[moving[o]].name;
        heads[2 + 2 * o] = "times";
        width[1 + 2 * o] = 14;
        width[2 + 2 * o] = 7;
    }
    struct table *t = report_table(r, 1 + 2 * MOVING, heads, width);
    snprintf(t->title, sizeof t->title, "More and more bytes, %d ranks%s", ranks,
             ranks > r->machine.cpus ? ", more than CPUs" : "");
    snprintf(t->note, sizeof t->note,
             "Median of single operations, until the last rank is through. times: as long as for a "
             "quarter of the bytes.");
    for (int i = 0; i < sizes; i++) {
        char text[1 + 2 * MOVING][32];
        const char *cells[1 + 2 * MOVING] = { unit_short(text[0], sizeof text[0], UNIT_BYTES,
                                                         points[0][i].at) };
        for (int o = 0; o < MOVING; o++) {
            const struct kink_point *now = &points[o][i], *before = i ? now - 1 : NULL;
            cells[1 + 2 * o] = now->count
                ? unit_text(text[1 + 2 * o], sizeof text[0], UNIT_NS, now->median)
                : "-";
            cells[2 + 2 * o] = now->count && before && before->count
                ? unit_text(text[2 + 2 * o], sizeof text[0], UNIT_RATIO,
                            now->median / before->median)
                : "";
        }
        table_row(t, false, cells);
    }
}

void ask_growth_sizes(const struct question *p, size_t most)
{
    struct kink_point points[MOVING][POINTS_MOST] = { { { 0 } } };
    struct ask_sizes fits[MOVING];
    struct team team;
    size_t pool = 0;
    int sizes = 0, found = 0;
    for (size_t bytes = 4; bytes <= most && sizes < POINTS_MOST; bytes *= 4)
        sizes++;
    for (int o = 0; o < MOVING; o++) {
        fits[o] = (struct ask_sizes){ &moving[o], 1, 4, most, false, false, 1 };
        fits[o].most = budget_most(p, &fits[o], 1);
        size_t room = budget_pool(&fits[o], p->ranks, fits[o].most);
        pool = room > pool ? room : pool;
    }
    open_team(&team, p, pool);
    for (int o = 0; o < MOVING; o++) {
        size_t bytes = 4;
        for (int i = 0; i < sizes; i++, bytes *= 4) {
            double share = p->share / MOVING / sizes;
            struct question one = {
                p->report, p->options, p->ranks, p->seconds / MOVING / sizes,
                p->done + share * (o * sizes + i), share
            };
            points[o][i].at = (double)bytes;
            if (bytes <= fits[o].most)
                points[o][i] = point(&one, &team, (struct line){ moving[o], bytes }, (double)bytes,
                                     i ? &points[o][i - 1] : NULL, bytes / 4);
        }
    }
    team_close(&team);
    size_table(p->report, p->ranks, points, sizes);
    struct plot *plot = time_plot(p->report, "bytes of a message", UNIT_BYTES);
    snprintf(plot->title, sizeof plot->title, "More and more bytes, %d ranks", p->ranks);
    for (int o = 0; o < MOVING; o++)
        found += kink_sizes(p->report, moving[o], p->ranks, points[o],
                            draw(plot, operations[moving[o]].name, o, points[o], sizes));
    if (!found)
        report_remark(p->report, false, "no kink over bytes, %d ranks", p->ranks);
}
