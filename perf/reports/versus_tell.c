/* Near and far are told apart everywhere, also in what is counted: a machine that is near today
 * says nothing of far. */
#include "reports/versus_tell.h"
#include "reports/versus_floor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const versus_title[VERSUS_SYSTEMS] = {
    "tutti", "Open MPI", "MPICH", "Open MPI 5", "MPICH 5", "Intel MPI", "floor",
    "floor past caches", "floor direct", "floor in one piece", "floor by 8 KiB",
    "floor by 32 KiB", "floor, results past", "floor past"
};
static const char marks[] = { [VERDICT_UNKNOWN] = '?', [VERDICT_BEHIND] = '-',
                              [VERDICT_LEVEL] = '=', [VERDICT_AHEAD] = '+' };

struct finding {
    struct point point;
    enum line_state state;
    enum versus_system system;
    struct interval ratio;
};

struct findings { struct finding *at; size_t n; size_t judged[LINE_STATES]; };

static void note_behind(struct findings *f, const struct finding *one)
{
    f->judged[one->state] += one->ratio.known;
    if (interval_verdict(&one->ratio) != VERDICT_BEHIND)
        return;
    struct finding *more = realloc(f->at, (f->n + 1) * sizeof *f->at);
    if (!more) {
        perror("versus");
        exit(2);
    }
    f->at = more;
    f->at[f->n++] = *one;
}

/* A figure, and its cell. */
static void tell_system(struct report *report, const struct rounds *all, struct finding *one,
                        char cell[32], struct findings *findings)
{
    struct series ns = rounds_ns(all, &one->point, one->state, one->system),
                  ratios = rounds_ratios(all, &one->point, one->state, one->system);
    struct interval time = interval_of(&ns);
    snprintf(cell, 32, rounds_left_out(all, &one->point, one->system) ? "slow" : "-");
    if (ns.n) {
        char what[48];
        snprintf(what, sizeof what, "%s %s", operations[one->point.op].name,
                 line_state_name(one->state));
        struct figure *f = report_figure(report, what, versus_title[one->system], UNIT_NS,
                                         one->point.ranks);
        figure_single(f, &ns);
        f->bytes = one->point.bytes;
        f->low = time.low;
        f->high = time.high;
        if (one->system == VERSUS_TUTTI)
            unit_text(cell, 32, UNIT_NS, time.median);
        else {
            one->ratio = interval_of(&ratios);
            f->ratio = (struct ratio){ one->ratio.median, one->ratio.low, one->ratio.high,
                                       one->ratio.n };
            snprintf(f->against, sizeof f->against, "%s", versus_title[VERSUS_TUTTI]);
            f->verdict = verdict_name(interval_verdict(&one->ratio));
            snprintf(cell, 32, "%.2f %c", one->ratio.median,
                     marks[interval_verdict(&one->ratio)]);
            note_behind(findings, one);
        }
    }
    series_free(&ns);
    series_free(&ratios);
}

static void tell_operation(struct report *report, const struct rounds *all,
                           const struct point *points, int count, enum line_state state,
                           struct findings *findings)
{
    static const char *const heads[] = {
        "bytes", "tutti", "OpenMPI", "MPICH", "OpenMPI 5", "MPICH 5", "Intel", "rounds"
    };
    static const int width[] = { 8, 9, 10, 10, 11, 10, 10, 8 };
    struct table *t = NULL;
    for (int i = 0; i < count; i++) {
        char text[VERSUS_PEERS_END + 2][32];
        const char *cells[VERSUS_PEERS_END + 2];
        struct series ns = rounds_ns(all, &points[i], state, VERSUS_TUTTI);
        size_t rounds = ns.n;
        series_free(&ns);
        if (!rounds)
            continue;
        if (!t) {
            t = report_table(report, VERSUS_PEERS_END + 2, heads, width);
            snprintf(t->title, sizeof t->title, "%s, %d ranks, %s",
                     operations[points[i].op].title, points[i].ranks, line_state_name(state));
        }
        cells[0] = unit_short(text[0], 32, UNIT_BYTES, (double)points[i].bytes);
        for (int s = 0; s < VERSUS_PEERS_END; s++) {
            struct finding one = {
                .point = points[i], .state = state, .system = (enum versus_system)s
            };
            tell_system(report, all, &one, text[s + 1], findings);
            cells[s + 1] = text[s + 1];
        }
        snprintf(text[VERSUS_PEERS_END + 1], 32, "%zu", rounds);
        cells[VERSUS_PEERS_END + 1] = text[VERSUS_PEERS_END + 1];
        table_row(t, false, cells);
    }
}

static int by_ratio(const void *a, const void *b)
{
    const struct finding *x = a, *y = b;
    return x->state != y->state ? (x->state > y->state) - (x->state < y->state)
        : (x->ratio.median > y->ratio.median) - (x->ratio.median < y->ratio.median);
}

static void tell_behind(struct report *report, struct findings *f)
{
    static const char *const heads[] = {
        "line", "ranks", "  operation", "bytes", "  peer", "ratio", "95 %", "rounds"
    };
    static const int width[] = { -5, 6, -18, 8, -13, 6, 14, 8 };
    struct table *t = report_table(report, 8, heads, width);
    size_t behind[LINE_STATES] = { 0 };
    snprintf(t->title, sizeof t->title, "Behind");
    snprintf(t->note, sizeof t->note,
             "Tables above: time of tutti; a peer's over it, median of rounds; + ahead, - behind: "
             "the whole 95 %% interval lies above, below 1; = neither; ? fewer than %d rounds. "
             "Of ping-pongs the way there and back.", INTERVAL_LEAST);
    if (f->n)
        qsort(f->at, f->n, sizeof *f->at, by_ratio);
    for (size_t i = 0; i < f->n; i++) {
        const struct finding *one = &f->at[i];
        char ranks[16], operation[32], bytes[32], ratio[32], range[48], rounds[32], peer[32];
        const char *cells[] = {
            line_state_name(one->state), ranks, operation, bytes, peer, ratio, range, rounds
        };
        behind[one->state]++;
        snprintf(ranks, sizeof ranks, "%d", one->point.ranks);
        snprintf(operation, sizeof operation, "  %s", operations[one->point.op].name);
        unit_short(bytes, sizeof bytes, UNIT_BYTES, (double)one->point.bytes);
        snprintf(peer, sizeof peer, "  %s", versus_title[one->system]);
        snprintf(ratio, sizeof ratio, "%.2f", one->ratio.median);
        snprintf(range, sizeof range, "%.2f-%.2f", one->ratio.low, one->ratio.high);
        snprintf(rounds, sizeof rounds, "%zu", one->ratio.n);
        table_row(t, false, cells);
    }
    for (enum line_state s = LINE_NEAR; s < LINE_STATES; s++)
        if (f->judged[s]) {
            char what[48];
            snprintf(what, sizeof what, "comparisons behind, %s, of %zu", line_state_name(s),
                     f->judged[s]);
            report_promise(report, what, (double)behind[s], 0, UNIT_COUNT);
        }
}

static void tell_count(struct report *report, const char *what, double value)
{
    struct figure *f = report_figure(report, what, versus_title[VERSUS_TUTTI], UNIT_COUNT, 0);
    f->value = value;
}

/* Where and how: line times, load, versions. */
static void tell_setting(struct report *report, const struct rounds *all)
{
    struct series line[LINE_STATES] = { { 0 } }, load = { 0 };
    size_t dropped = 0;
    for (size_t i = 0; i < all->n; i++) {
        const struct round *r = &all->at[i];
        enum line_state state = line_state(r->before, r->after);
        if (state == LINE_CHANGED)
            dropped++;
        else {
            series_add(&line[state], r->before);
            series_add(&line[state], r->after);
        }
        series_add(&load, r->load);
    }
    tell_count(report, "rounds", (double)all->n);
    tell_count(report, "rounds dropped", (double)dropped);
    tell_count(report, "load", series_median(&load));
    for (enum line_state s = LINE_NEAR; s < LINE_STATES; s++)
        if (line[s].n) {
            char what[48];
            snprintf(what, sizeof what, "line %s", line_state_name(s));
            figure_single(report_figure(report, what, versus_title[VERSUS_TUTTI], UNIT_NS, 2),
                          &line[s]);
            report_remark(report, false, "%s: %zu rounds, a line one way in %.0f ns (median)",
                          line_state_name(s), line[s].n / 2, series_median(&line[s]));
            series_free(&line[s]);
        }
    report_remark(report, false, "dropped: %zu of %zu rounds, in which the line's time changed",
                  dropped, all->n);
    report_remark(report, false, "load of the machine: median %.1f, most %.1f (%d CPUs)",
                  series_median(&load), series_quantile(&load, 1), report->machine.cpus);
    for (int i = 0; i < all->left_count; i++) {
        const struct left_out *l = &all->left[i];
        char bytes[32], its[32], tutti[32];
        report_remark(report, false, "slow: %s, %s of %d ranks, %s: %s, tutti %s; left out from "
                      "there on",
                      versus_title[l->system], operations[l->from.op].name, l->from.ranks,
                      unit_short(bytes, sizeof bytes, UNIT_BYTES, (double)l->from.bytes),
                      unit_text(its, sizeof its, UNIT_NS, l->ns),
                      unit_text(tutti, sizeof tutti, UNIT_NS, l->tutti_ns));
    }
    if (all->unread)
        report_remark(report, false, "%zu lines of the file of rounds cannot be read", all->unread);
    for (int i = 0; i < VERSUS_PEERS_END; i++)
        if (all->version[i][0])
            report_remark(report, false, "version: %s %s", versus_title[i], all->version[i]);
    series_free(&load);
}

void versus_tell(struct report *report, const struct rounds *all, const struct point *points,
                 int count)
{
    struct findings findings = { 0 };
    tell_setting(report, all);
    for (int i = 0, n; i < count; i += n) {
        for (n = 1; i + n < count && points[i + n].op == points[i].op
             && points[i + n].ranks == points[i].ranks; n++) { }
        for (enum line_state s = LINE_NEAR; s < LINE_STATES; s++)
            tell_operation(report, all, points + i, n, s, &findings);
    }
    tell_behind(report, &findings);
    versus_tell_floors(report, all, points, count);
    free(findings.at);
}
