/* With more ranks than CPUs who runs next decides, and a shape has a number of switches that no
 * code can do without. So each is held against itself with nothing around it: the same copies, and
 * bare yields (bare_shapes.h). Of two kinds: all or none, as here, and as in MPI, where who only
 * gives leaves at once. What lies between these two is the price of the promise, and no waste. */
#include "reports/bare_shapes.h"
#include "reports/line_watch.h"
#include "reports/question.h"
#include "reports/tutti_operations.h"

#include "harness/progress.h"

#include <stdio.h>

enum { TUTTI, BARE, BARE_PAST, LOOSE, LOOSE_PAST, PEERS, COUNT = PEERS + 3 };
static const struct contender contenders[] = {
    [TUTTI] = {
        "tutti", "from private memory", NULL, 0, false, 0, 0, operation_run, operation_rewrite,
        OP_NONE
    },
    [BARE] = BARE_FLOOR("floor", "the same copies and bare yields: all or none", 0,
                        bare_shapes_all),
    [BARE_PAST] = BARE_FLOOR("floor past caches", "the same, written past the caches",
                             BARE_PAST_LEAST, bare_shapes_all_past),
    [LOOSE] = BARE_FLOOR("loose floor", "the same, but who only gives leaves at once", 0,
                         bare_shapes_loose),
    [LOOSE_PAST] = BARE_FLOOR("loose past caches", "the same, written past the caches",
                              BARE_PAST_LEAST, bare_shapes_loose_past),
    PEER("Open MPI", "openmpi"), PEER("Open MPI 5", "openmpi5"), PEER("Intel MPI", "impi"),
    [COUNT] = { 0 }
};
static const char *const short_names[COUNT] = {
    [PEERS] = "Open", [PEERS + 1] = "Open5", [PEERS + 2] = "Intel"
};

static const struct { enum operation_id op; size_t most; } asked[] = {
    { OP_BROADCAST, 1 << 20 }, { OP_REDUCE, 1 << 20 }, { OP_GATHER, 1 << 20 },
    { OP_SCATTER, 1 << 20 }, { OP_ALL_REDUCE, 1 << 10 }, { OP_ALL_GATHER, 1 << 20 },
    { OP_ALL_TO_ALL, 1 << 20 }
};
static const size_t sizes[] = { 4, 1 << 10, 64 << 10, 256 << 10, 1 << 20 };
enum { ASKED = sizeof asked / sizeof *asked, SIZES = sizeof sizes / sizeof *sizes };

/* What the floor must not be missed by; what takes so many times as long, and so long at least, has
 * no more rounds. */
static const double LIMIT = 1.2, SLOW_TIMES = 50, SLOW_NS = 1e6;

/* Round by round the shorter of a floor's two times. */
static struct series faster(const struct measured *plain, const struct measured *past)
{
    struct series both = { 0 };
    for (size_t i = 0; plain->in && i < plain->rounds.n; i++) {
        double ns = plain->rounds.at[i];
        bool two = past->in && i < past->rounds.n;
        series_add(&both, two && past->rounds.at[i] < ns ? past->rounds.at[i] : ns);
    }
    return both;
}

static const char *time_text(char text[32], const struct series *s)
{
    return s->n ? unit_text(text, 32, UNIT_NS, series_median(s)) : "-";
}

static void tell(struct report *report, struct table *t, const struct team *team,
                 enum operation_id op, size_t bytes, const struct measured *m)
{
    char text[8][32], what[80];
    struct series floor = faster(&m[BARE], &m[BARE_PAST]),
                  loose = faster(&m[LOOSE], &m[LOOSE_PAST]);
    struct ratio over = series_ratio(&m[TUTTI].rounds, &floor), best = { 0 };
    int who = 0;
    snprintf(what, sizeof what, "crowd %s", operations[op].name);
    for (int i = 0; i < COUNT; i++) {
        if (!m[i].in)
            continue;
        struct figure *f = report_figure(report, what, contenders[i].name, UNIT_NS, team->ranks);
        figure_single(f, &m[i].single);
        figure_rounds(f, &m[i].rounds);
        f->bytes = bytes;
        f->ratio = series_ratio(&m[i].rounds, &m[TUTTI].rounds);
        snprintf(f->against, sizeof f->against, "%s", contenders[TUTTI].name);
        if (i >= PEERS && (!who || f->ratio.median < best.median)) {
            best = f->ratio;
            who = i;
        }
    }
    const char *cells[8] = {
        operations[op].name, unit_short(text[1], sizeof text[1], UNIT_BYTES, (double)bytes),
        time_text(text[2], &m[TUTTI].rounds), time_text(text[3], &loose),
        time_text(text[4], &floor), "-", "-", "-"
    };
    if (over.n) {
        snprintf(text[5], sizeof text[5], "%.2f (%.2f-%.2f)", over.median, over.low, over.high);
        cells[5] = text[5];
        snprintf(what, sizeof what, "%d ranks: %s, %s / its floor", team->ranks,
                 operations[op].name, cells[1]);
        report_promise(report, what, over.median, LIMIT, UNIT_RATIO);
    }
    if (who) {
        struct ratio its = series_ratio(&m[who].rounds, &floor);
        snprintf(text[6], sizeof text[6], "%.2f %s", best.median, short_names[who]);
        cells[6] = text[6];
        cells[7] = unit_text(text[7], sizeof text[7], UNIT_RATIO, its.median);
    }
    table_row(t, false, cells);
    series_free(&floor);
    series_free(&loose);
}

/* A peer that never yields would make the rounds of all others wait for it. */
static void leave_out(struct report *report, const struct team *team, enum operation_id op,
                      size_t bytes, struct measured *m)
{
    double limit = SLOW_TIMES * m[TUTTI].rough;
    limit = limit > SLOW_NS ? limit : SLOW_NS;
    for (int i = PEERS; i < COUNT; i++)
        if (m[i].in && m[i].rough > limit) {
            char size[32], its[32];
            m[i].in = false;
            report_remark(report, false, "%s left out: %s of %d ranks, %s takes it %s",
                          contenders[i].name, operations[op].name, team->ranks,
                          unit_short(size, sizeof size, UNIT_BYTES, (double)bytes),
                          unit_text(its, sizeof its, UNIT_NS, m[i].rough));
        }
}

static void shape(const struct question *p, struct team *team, struct table *t,
                  enum operation_id op, size_t bytes, double seconds, double done)
{
    struct measured m[CONTENDERS_MAX] = { 0 };
    struct effort e = {
        seconds, p->options->quick, p->options->hot, bytes, done, 0, op, false, 1
    };
    progress_show(done, "%d ranks: %s", team->ranks, operations[op].name);
    measure_ready(team, &e, m);
    leave_out(p->report, team, op, bytes, m);
    double began = stamp_seconds(), until = e.quick ? began : began + seconds;
    for (int round = 0, least = e.quick ? 1 : 5; round < least || stamp_seconds() < until; round++)
        for (int k = 0; k < 2 * COUNT; k++) {
            int i = k < COUNT ? k : 2 * COUNT - 1 - k;
            if (m[i].in)
                series_add(&m[i].rounds, measure_turn(team, &e, i, &m[i]));
        }
    tell(p->report, t, team, op, bytes, m);
    remark_systems(p->report, team, m);
    measured_free(m, COUNT);
}

/* For a trial of the program two sizes of each are enough: of one piece, of a few. */
static bool wanted(const struct question *p, int k, int i)
{
    return sizes[i] <= asked[k].most && (!p->options->quick || i == 0 || i == SIZES - 2);
}

void ask_shapes(const struct question *p)
{
    static const char *const heads[] = {
        "", "bytes", "tutti", "loose", "floor", "/ floor", "MPI / it", "/ floor"
    };
    static const int width[] = { -10, 8, 8, 8, 8, 17, 12, 8 };
    struct team team;
    struct table *t = report_table(p->report, 8, heads, width);
    size_t room = 2 * operation_room(OP_ALL_TO_ALL, p->ranks, sizes[SIZES - 1]);
    int all = 0, done = 0;
    for (int k = 0; k < ASKED; k++)
        for (int i = 0; i < SIZES; i++)
            all += wanted(p, k, i);
    team_open(&team,
              &(struct team_plan){ .ranks = p->ranks,
                                   .contenders = contenders,
                                   .system = &tutti_system,
                                   .shared_bytes = bare_shapes_bytes(p->ranks),
                                   .pool_bytes = room,
                                   .without = p->options->without,
                                   .done = p->done });
    snprintf(t->title, sizeof t->title, "Shapes, %d ranks, more than CPUs", p->ranks);
    snprintf(t->note, sizeof t->note,
             "Floor: the copies that must be and bare yields, all or none, by the faster of plain "
             "stores and those past the caches; loose: who only gives leaves at once. MPI / it, "
             "/ floor: the fastest MPI's time over tutti's, over the floor's: below 1 all or none "
             "cannot be as fast. Medians of rounds.");
    struct line_watch *line = line_watch_open();
    struct series lines = { 0 };
    for (int k = 0; k < ASKED; k++)
        for (int i = 0; i < SIZES; i++) {
            if (!wanted(p, k, i))
                continue;
            series_add(&lines, line_watch_ns(line));
            shape(p, &team, t, asked[k].op, sizes[i], p->seconds / all,
                  p->done + p->share * done++ / all);
        }
    report_remark(p->report, false, "%d ranks: a cache line one way in %.0f ns (%.0f to %.0f)",
                  p->ranks, series_median(&lines), series_quantile(&lines, 0),
                  series_quantile(&lines, 1));
    series_free(&lines);
    line_watch_close(line);
    team_close(&team);
}
