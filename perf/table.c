/* The table of targets and results: every row of reports/targets.c measured in one run, which ends
 * when it has said it would: each part has its end on the clock, and what there is no time for is
 * left out and said. */
#include "harness/limit.h"
#include "harness/start.h"
#include "reports/line_watch.h"
#include "reports/question.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static const struct perf_program program = {
    .name = "table",
    .question =
        "Is the library as fast as it must be? Every promise measured in one run, and those that "
        "could not be.",
    .ranks = "2,4,8",
    .seconds = 300,
    .sizes = true,
    .launches = true,
    .peers = true,
    .examples =
        "  table --strict --json table.json                  a quarter of an hour\n"
        "  table --seconds 100 --most 16M --html table.html  five minutes\n",
};

enum { MOST_OF_ALL = 256 << 20, MOST = 16 << 20 };
/* each row is measured at several times, because a machine may be fast now and slow in a minute */
enum { PASSES = 5, MOMENTS = 4, STARTS = 3 };
/* Of the time of a number of ranks: each moment of the barriers, all_reduce, waits. The other
 * collectives have what is left. Waits want some seconds, and 256 MiB take half a minute. */
static const double MOMENT = 0.02, SUMS = 0.25, WAITS = 0.07, WAITS_LEAST_S = 6, WAITS_MOST = 0.2,
                    LARGE_S = 40;
/* Of all the time: what is given to the parts, for the last of each may be late; starts. */
static const double PLANNED = 0.96;
static const double TAIL = 0.06, TAIL_LEAST_S = 12, TAIL_MOST = 0.25;

static size_t less(size_t a, size_t b) { return a < b ? a : b; }

/* A share of the time, but at least so long, if that is not too much of it. */
static double part(double all, double share, double least, double most)
{
    double s = all * share > least ? all * share : least;
    return s < all * most ? s : all * most;
}

static void look(struct line_watch *line, struct series *lines)
{
    double ns = line_watch_ns(line);
    if (ns > 0)
        series_add(lines, ns);
}

static void tell_time(const struct perf_options *o, double all)
{
    char list[64] = "", clock[16] = "";
    time_t end = time(NULL) + (time_t)all;
    struct tm tm;
    for (int k = 0; k < o->lists; k++)
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%d", k ? ", " : "",
                 o->ranks[k]);
    strftime(clock, sizeof clock, "%H:%M:%S", localtime_r(&end, &tm));
    fprintf(stderr, "table: %s ranks, %g s each: until %s\n", list, o->seconds, clock);
}

struct plan {
    struct report *report;
    const struct perf_options *options;
    struct ask_sizes large, rest;
    struct line_watch *line;
    struct series lines;
};

/* What is left of a number of ranks' time, for its next part. */
static double left(double end, double after)
{
    double s = end - after - stamp_seconds();
    return s > 0 ? s : 0;
}

static void measure_ranks(struct plan *p, int ranks, double seconds)
{
    double end = stamp_seconds() + seconds, moment = seconds * MOMENT,
           waits = part(seconds, WAITS, WAITS_LEAST_S, WAITS_MOST);
    const struct perf_options *o = p->options;
    struct perf_options few = *o;
    struct ask_sizes large = p->large;
    /* no promise is about the others there, and they take ten times as long */
    if (ranks > 4 && !o->without)
        few.without = "mpich,gloo,torch";
    if (ranks > 2)                         /* with more ranks each step takes longer */
        large.most = less(large.most, MOST);
    if (large.most > MOST && !o->most_given && limit_set() && seconds * SUMS < LARGE_S) {
        large.most = MOST;
        report_remark(p->report, false, "%d ranks: no time for all_reduce above 16 MiB", ranks);
    }
    struct question barrier = { p->report, o, ranks, moment * MOMENTS, 0, 0 };
    struct barriers *barriers = ask_barriers_open(&barrier, MOMENTS);
    look(p->line, &p->lines);
    ask_barriers_measure(barriers, 0, 0);
    ask_collective(&(struct question){ p->report, &few, ranks, seconds * SUMS, 0, 0 }, &large);
    look(p->line, &p->lines);
    ask_barriers_measure(barriers, 0, 0);
    ask_collective(&(struct question){ p->report, &few, ranks, left(end, waits + 2 * moment), 0,
                                       0 },
                   &p->rest);
    look(p->line, &p->lines);
    ask_barriers_measure(barriers, 0, 0);
    ask_wait(&(struct question){ p->report, o, ranks, left(end, moment), 0, 0 });
    ask_barriers_measure(barriers, 0, 0);
    ask_barriers_close(barriers);
}

int main(int argc, char **argv)
{
    static enum operation_id sums[] = { OP_ALL_REDUCE }, others[OPS];
    static const int starts[STARTS] = { 2, 8, 64 };
    static const double share[STARTS] = { 0.2, 0.3, 1 };     /* of the time that is left */
    struct perf_options o;
    struct report report;
    int count = 0;
    if (start_child())
        return 0;
    perf_options(&o, &program, argc, argv);
    stamp_calibrate();
    double all = o.seconds * o.lists, end = stamp_seconds() + all * PLANNED,
           tail = part(all, TAIL, TAIL_LEAST_S, TAIL_MOST);
    if (!o.quick) {
        limit_begin(all);
        tell_time(&o, all);
    }
    for (int op = OP_ALL_REDUCE + 1; op < OPS_ALL; op++)
        others[count++] = (enum operation_id)op;
    size_t most = o.most_given || o.quick ? o.most : MOST_OF_ALL;
    struct plan plan = {
        &report, &o, { sums, 1, 4, most, false, o.quick, PASSES },
        { others, o.quick ? 1 : count, 4, less(most, MOST), false, o.quick, PASSES }, NULL,
        { NULL, 0, 0 }
    };
    report_begin(&report, &program);
    plan.line = line_watch_open();
    for (int k = 0; k < o.lists; k++)
        measure_ranks(&plan, o.ranks[k], left(end, tail) / (o.lists - k));
    look(plan.line, &plan.lines);
    line_watch_close(plan.line);
    line_watch_tell(&report, &plan.lines);
    series_free(&plan.lines);
    for (int k = 0; k < (o.quick ? 1 : STARTS); k++)
        ask_start(&(struct question){ &report, &o, starts[k], left(end, 0) * share[k], 0, 0 });
    check_consistency(&report);
    check_promises(&report, true);
    report.only_promises = !o.csv;
    return report_end(&report, &o);
}
