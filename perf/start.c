/* How long it takes until the ranks of a job can do something together. */
#include "harness/death.h"
#include "parts/part.h"

static const struct perf_program program = {
    .name = "start",
    .question = "How long does it take from the start of a job to the end of its first barrier, beside other launchers?",
    .ranks = "2,8,64",
    .seconds = 10,
    .launches = true,
    .peers = true,
    .examples = "  start -n 2,8\n  start --without gloo --html start.html\n",
};

int main(int argc, char **argv)
{
    struct perf_options options;
    struct report report;
    if (start_child())
        return 0;
    perf_options(&options, &program, argc, argv);
    stamp_calibrate();
    report_begin(&report, &program);
    for (int k = 0; k < options.lists; k++)
        part_start(&(struct part){ &report, &options, options.ranks[k], options.seconds, (double)k / options.lists, 1.0 / options.lists },
                   options.tutti);
    part_promises(&report, false);
    return report_end(&report, &options);
}
