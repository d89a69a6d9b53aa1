/* The floor of a round is the shortest of its floors (bare_pairs.h, bare_shapes.h). The fastest
 * peer of a point is the one with the least median ratio to tutti. */
#include "reports/versus_floor.h"
#include "reports/versus_tell.h"

#include <stdio.h>

struct against { struct interval tutti, best, best_floor; enum versus_system who; };

static bool against_of(const struct rounds *all, const struct point *p, enum line_state state,
                       struct against *to)
{
    struct series s = rounds_over_floor(all, p, state, VERSUS_TUTTI);
    *to = (struct against){ .tutti = interval_of(&s) };
    bool known = to->tutti.known;
    series_free(&s);
    for (int i = VERSUS_TUTTI + 1; known && i < VERSUS_PEERS_END; i++) {
        s = rounds_ratios(all, p, state, (enum versus_system)i);
        struct interval ratio = interval_of(&s);
        if (ratio.known && (!to->who || ratio.median < to->best.median)) {
            to->best = ratio;
            to->who = (enum versus_system)i;
        }
        series_free(&s);
    }
    if (!to->who)
        return false;
    s = rounds_over_floor(all, p, state, to->who);
    to->best_floor = interval_of(&s);
    series_free(&s);
    return true;
}

static void row(struct table *t, const struct point *p, enum line_state state,
                const struct against *a)
{
    char ranks[16], operation[32], bytes[32], text[3][64], peer[32];
    const char *cells[] = {
        line_state_name(state), ranks, operation, bytes, text[0], text[1], text[2], peer
    };
    const struct interval *is[] = { &a->tutti, &a->best, &a->best_floor };
    snprintf(ranks, sizeof ranks, "%d", p->ranks);
    snprintf(operation, sizeof operation, "  %s", operations[p->op].name);
    unit_short(bytes, sizeof bytes, UNIT_BYTES, (double)p->bytes);
    snprintf(peer, sizeof peer, "  %s", versus_title[a->who]);
    for (int i = 0; i < 3; i++)
        snprintf(text[i], sizeof text[i], "%.2f %.2f-%.2f", is[i]->median, is[i]->low, is[i]->high);
    table_row(t, false, cells);
}

struct floors { struct report *report; const struct rounds *all; struct table *t; };

/* The points of two ranks, or of more ranks than CPUs. */
static void tell(struct floors *f, const struct point *points, int count, enum line_state s,
                 bool two)
{
    static const char *const heads[] = {
        "line", "ranks", "  operation", "bytes", "/ floor", "peer / it", "peer / floor", "  peer"
    };
    static const int width[] = { -5, 6, -17, 8, 16, 16, 16, -12 };
    struct series best = { 0 }, floors = { 0 };
    int behind = 0, below = 0;
    for (int i = 0; i < count; i++) {
        struct against a;
        if ((points[i].ranks == 2) != two || !against_of(f->all, &points[i], s, &a))
            continue;
        f->t = f->t ? f->t : report_table(f->report, 8, heads, width);
        row(f->t, &points[i], s, &a);
        series_add(&best, a.best.median);
        series_add(&floors, a.best_floor.median);
        if (interval_verdict(&a.best) == VERDICT_BEHIND) {
            behind++;
            below += interval_verdict(&a.best_floor) == VERDICT_BEHIND;
        }
    }
    if (best.n)
        report_remark(f->report, false,
                      "%s, %s, %zu points: behind %d, of them below the floor %d; the fastest "
                      "peer / tutti, median %.2f, / floor %.2f",
                      line_state_name(s), two ? "2 ranks" : "more ranks than CPUs", best.n, behind,
                      below, series_median(&best), series_median(&floors));
    series_free(&best);
    series_free(&floors);
}

void versus_tell_floors(struct report *report, const struct rounds *all,
                        const struct point *points, int count)
{
    struct floors f = { report, all, NULL };
    for (enum line_state s = LINE_NEAR; s < LINE_STATES; s++) {
        tell(&f, points, count, s, true);
        tell(&f, points, count, s, false);
    }
    if (!f.t)
        return;
    snprintf(f.t->title, sizeof f.t->title, "Beside the floor");
    snprintf(f.t->note, sizeof f.t->note,
             "/ floor: tutti's time over that of the copies that must be and bare flags, or yields "
             "with more ranks than CPUs; collectives all or none. peer / it, / floor: the fastest "
             "peer's over tutti's, over the floor's: below 1 nobody can be as fast so. Medians of "
             "rounds, 95 %% intervals.");
}
