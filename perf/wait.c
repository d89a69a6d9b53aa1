/* What a wait costs that lasts. */
#include "parts/part.h"

static const struct perf_program program = {
    .name = "wait",
    .question = "How much CPU time does a rank burn that waits 100 ms for the last one, and how soon after it is it back?",
    .ranks = "2,8",
    .seconds = 12,
    .peers = true,
    .examples = "  wait -n 2,4,8\n  wait --strict --without all\n",
};

int main(int argc, char **argv)
{
    struct perf_options options;
    struct report report;
    perf_options(&options, &program, argc, argv);
    stamp_calibrate();
    report_begin(&report, &program);
    for (int k = 0; k < options.lists; k++)
        part_wait(&(struct part){ &report, &options, options.ranks[k], options.seconds, (double)k / options.lists, 1.0 / options.lists });
    part_promises(&report, false);
    return report_end(&report, &options);
}
