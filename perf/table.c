/* The table of targets and results: every row of reports/targets.c measured in one run. */
#include "harness/start.h"
#include "reports/line_watch.h"
#include "reports/question.h"

#include <stdio.h>

static const struct perf_program program = {
    .name = "table",
    .question =
        "Is the library as fast as it must be? Every promise measured in one run, and those that "
        "could not be.",
    .ranks = "2,4,8",
    .seconds = 400,
    .sizes = true,
    .launches = true,
    .peers = true,
    .examples =
        "  table --strict --json table.json\n  table --seconds 100 --most 16M --html table.html\n",
};

enum { MOST_OF_ALL = 256 << 20, MOST = 16 << 20 };
/* each row is measured at several times, because a machine may be fast now and slow in a minute */
enum { PASSES = 4, MOMENTS = 4 };

static size_t less(size_t a, size_t b) { return a < b ? a : b; }

static void look(struct line_watch *line, struct series *lines)
{
    double ns = line_watch_ns(line);
    if (ns > 0)
        series_add(lines, ns);
}

/* A machine may bring its CPUs together and apart while it is measured. */
static void tell_line(struct report *r, struct series *lines)
{
    if (lines->n)
        report_remark(r, false, "a cache line took %.0f ns one way, %.0f to %.0f in %zu looks",
                      series_quantile(lines, 0.5), series_quantile(lines, 0),
                      series_quantile(lines, 1), (size_t)lines->n);
    series_free(lines);
}

int main(int argc, char **argv)
{
    static enum operation_id sums[] = { OP_ALL_REDUCE }, others[OPS];
    struct perf_options o;
    struct report report;
    int count = 0;
    if (start_child())
        return 0;
    perf_options(&o, &program, argc, argv);
    for (int op = OP_ALL_REDUCE + 1; op < OPS_ALL; op++)
        others[count++] = (enum operation_id)op;
    size_t most = o.most_given || o.quick ? o.most : MOST_OF_ALL;
    struct ask_sizes large = { sums, 1, 4, most, false, o.quick, PASSES },
                     rest = { others, o.quick ? 1 : count, 4, less(most, MOST), false, o.quick,
                              PASSES };
    stamp_calibrate();
    report_begin(&report, &program);
    struct line_watch *line = line_watch_open();
    struct series lines = { 0 };
    for (int k = 0; k < o.lists; k++) {
        double share = 0.9 / o.lists, at = k * share, s = o.seconds / o.lists;
        struct question barrier = { &report, &o, o.ranks[k], s * 0.08, at, share * 0.1 };
        struct barriers *barriers = ask_barriers_open(&barrier, MOMENTS);
        look(line, &lines);
        ask_barriers_measure(barriers, at, share * 0.05);
        struct perf_options few = o;
        /* no promise is about the others there, and they take ten times as long */
        if (o.ranks[k] > 4 && !o.without)
            few.without = "mpich,gloo,torch";
        ask_collective(&(struct question){ &report, &few, o.ranks[k], s * 0.2, at + share * 0.1,
                                           share * 0.2 },
                       &large);
        look(line, &lines);
        ask_barriers_measure(barriers, at + share * 0.3, share * 0.02);
        ask_collective(&(struct question){ &report, &few, o.ranks[k], s * 0.6, at + share * 0.32,
                                           share * 0.58 },
                       &rest);
        look(line, &lines);
        ask_barriers_measure(barriers, at + share * 0.9, share * 0.02);
        ask_wait(&(struct question){ &report, &o, o.ranks[k], s * 0.06, at + share * 0.92,
                                     share * 0.06 });
        ask_barriers_measure(barriers, at + share * 0.98, share * 0.02);
        ask_barriers_close(barriers);
        large.most = less(most, MOST);          /* with more ranks each step takes longer */
    }
    look(line, &lines);
    line_watch_close(line);
    tell_line(&report, &lines);
    static const int starts[] = { 2, 8, 64 };
    for (int k = 0; k < (o.quick ? 1 : 3); k++)
        ask_start(&(struct question){ &report, &o, starts[k], o.seconds * 0.02, 0.9 + 0.1 * k / 3,
                                      0.1 / 3 });
    check_consistency(&report);
    check_promises(&report, true);
    report.only_promises = !o.csv;
    return report_end(&report, &o);
}
