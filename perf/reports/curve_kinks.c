/* What is to be expected is the simplest that can be said, for a rule that fits everything
 * finds nothing.
 *
 * Over bytes: an operation takes a time of its own and a time for each byte, so four times the
 * bytes never take more than four times as long.
 *
 * Over ranks, from N to M:
 * - Up to as many as there are CPUs each rank looks at the lines of all others: (M - 1) / (N - 1).
 * - Ranks that share CPUs take turns on them, and nobody is through before all have had one: M / N,
 *   2 for twice as many.
 * - Or else the bytes that must move, by as many CPUs as there are: 2 for twice as many ranks in
 *   most operations, 4 where every rank reads what every other gives.
 * The largest of these. Nothing is said of the step from one rank, which waits for nobody, to two;
 * nor of the step from a CPU each to fewer, from cache lines to the scheduler.
 *
 * A kink is a step that takes half as long again as that, or less time where there is more to do;
 * and only where the middle halves of both say so. That half again is what caches, one after the
 * other too small, make of the time of a byte without anything being wrong. */
#include "reports/curve_kinks.h"

#include <stdio.h>

enum { SAMPLES_LEAST = 3 };
/* as in reports/consistency.c, from which figures contradict each other */
static const double STEEP = 1.5, FALLS = 0.15, FALLS_CROWDED = 0.5;

struct kink_point kink_point(double at, const struct series *single)
{
    return (struct kink_point){
        at, series_quantile(single, 0.25), series_median(single),
        series_quantile(single, 0.75), single->n
    };
}

enum kink kink_between(const struct kink_point *a, const struct kink_point *b, double expected,
                       bool crowded)
{
    if (a->count < SAMPLES_LEAST || b->count < SAMPLES_LEAST || expected <= 0)
        return KINK_NONE;
    if (b->median > STEEP * expected * a->median && b->low > expected * a->high)
        return KINK_STEEP;
    return a->low > (1 + (crowded ? FALLS_CROWDED : FALLS)) * b->high ? KINK_FALL : KINK_NONE;
}

static double larger(double a, double b) { return a > b ? a : b; }

static double moved(enum operation_id op, size_t bytes, int ranks, int cpus)
{
    return operation_moves(op, ranks, bytes) / (ranks < cpus ? ranks : cpus);
}

double kink_expected(enum operation_id op, size_t bytes, int from, int to, int cpus)
{
    if (from < 2 || (from <= cpus && to > cpus))
        return 0;
    double turns = from > cpus ? (double)to / from : (double)(to - 1) / (from - 1);
    return bytes ? larger(turns, moved(op, bytes, to, cpus) / moved(op, bytes, from, cpus)) : turns;
}

static const char *whole(char *to, size_t room, double bytes)
{
    return unit_short(to, room, UNIT_BYTES, bytes);
}

int kink_sizes(struct report *r, enum operation_id op, int ranks, const struct kink_point *points,
               int count)
{
    int found = 0;
    for (int i = 0; i + 1 < count; i++) {
        const struct kink_point *a = &points[i], *b = &points[i + 1];
        char from[32], to[32];
        double times = b->median / a->median;
        enum kink kink = kink_between(a, b, b->at / a->at, ranks > r->machine.cpus);
        if (kink == KINK_STEEP)
            report_remark(r, false,
                          "kink: %s, %d ranks: %s -> %s takes %.1f times as long, for %.3g times "
                          "the bytes",
                          operations[op].name, ranks, whole(from, sizeof from, a->at),
                          whole(to, sizeof to, b->at), times, b->at / a->at);
        else if (kink == KINK_FALL)
            report_remark(r, true, "kink: %s, %d ranks: %s -> %s takes %.2f of the time",
                          operations[op].name, ranks, whole(from, sizeof from, a->at),
                          whole(to, sizeof to, b->at), times);
        found += kink != KINK_NONE;
    }
    return found;
}

int kink_ranks(struct report *r, enum operation_id op, size_t bytes,
               const struct kink_point *points, int count)
{
    int found = 0;
    for (int i = 0; i + 1 < count; i++) {
        const struct kink_point *a = &points[i], *b = &points[i + 1];
        int from = (int)a->at, to = (int)b->at;
        char size[32] = "", of[40] = "";
        double expected = kink_expected(op, bytes, from, to, r->machine.cpus);
        enum kink kink = kink_between(a, b, expected, to > r->machine.cpus);
        if (bytes)
            snprintf(of, sizeof of, " of %s", whole(size, sizeof size, (double)bytes));
        if (kink == KINK_STEEP)
            report_remark(r, false,
                          "kink: %s%s: %d -> %d ranks takes %.1f times as long; %.2g times is "
                          "expected",
                          operations[op].name, of, from, to, b->median / a->median, expected);
        else if (kink == KINK_FALL)
            report_remark(r, false, "kink: %s%s: %d -> %d ranks takes %.2f of the time",
                          operations[op].name, of, from, to, b->median / a->median);
        found += kink != KINK_NONE;
    }
    return found;
}
