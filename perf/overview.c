/* Measures everything in a minute or two: each part is short, all are on one page. */
#include "harness/start.h"
#include "os/cpu.h"
#include "reports/question.h"

#include <stdio.h>

static const struct perf_program program = {
    .name = "overview",
    .question =
        "How fast is it here? Barriers, more ranks than CPUs, every collective, waiting and "
        "starting, beside other systems.",
    .ranks = "2",
    .seconds = 40,
    .sizes = true,
    .launches = true,
    .peers = true,
    .examples = "  overview --html overview.html\n  overview -n 4 --seconds 200 --most 64M\n",
};

enum { MOST = 4 << 20 };

int main(int argc, char **argv)
{
    static enum operation_id all[OPS];
    struct perf_options o;
    struct report report;
    int count = 0;
    if (start_child())
        return 0;
    perf_options(&o, &program, argc, argv);
    for (int op = OP_BARRIER + 1; op < OPS_ALL && (!o.quick || count < 1); op++)
        all[count++] = (enum operation_id)op;
    struct ask_sizes sizes = {
        all, count, 4, o.quick ? 1024 : o.most_given ? o.most : MOST, false, true, 1
    };
    stamp_calibrate();
    report_begin(&report, &program);
    for (int k = 0; k < o.lists; k++) {
        int ranks = o.ranks[k];
        double share = 0.8 / o.lists, done = k * share, s = o.seconds;
        ask_barrier(&(struct question){ &report, &o, ranks, s * 0.1, done, share * 0.12 });
        ask_collective(&(struct question){ &report, &o, ranks, s * 0.5, done + share * 0.12,
                                           share * 0.6 },
                       &sizes);
        ask_wait(
            &(struct question){ &report, &o, ranks, s * 0.1, done + share * 0.72, share * 0.14 });
        ask_start(
            &(struct question){ &report, &o, ranks, s * 0.1, done + share * 0.86, share * 0.14 });
    }
    if (!o.quick)
        ask_crowd(&(struct question){ &report, &o, 0, o.seconds * 0.2, 0.8, 0.2 }, NULL, 0);
    check_consistency(&report);
    check_promises(&report, false);
    return report_end(&report, &o);
}
