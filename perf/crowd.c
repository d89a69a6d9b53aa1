/* What becomes of a barrier when ranks outnumber CPUs. */
#include "parts/part.h"

static const struct perf_program program = {
    .name = "crowd",
    .question = "How long does a barrier take with 1, 2, 4 and 16 times as many ranks as CPUs, beside those of other systems?",
    .ranks = "2",
    .seconds = 16,
    .peers = true,
    .examples = "  crowd --html crowd.html\n  crowd --seconds 60 --without mpich\n",
};

int main(int argc, char **argv)
{
    struct perf_options options;
    struct report report;
    perf_options(&options, &program, argc, argv);
    stamp_calibrate();
    report_begin(&report, &program);
    part_crowd(&(struct part){ &report, &options, 0, options.seconds, 0, 1 });
    return report_end(&report, &options);
}
