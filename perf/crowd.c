/* Measures a barrier of more ranks than CPUs. */
#include "reports/question.h"

static const struct perf_program program = {
    .name = "crowd",
    .question =
        "How long does a barrier of more and more ranks on the same CPUs take, beside those of "
        "other systems?",
    .seconds = 16,
    .peers = true,
    .examples = "  crowd --html crowd.html\n  crowd -n 2,4,8,16,32 --seconds 60 --without mpich\n",
};

int main(int argc, char **argv)
{
    struct perf_options options;
    struct report report;
    report_open(&report, &program, &options, argc, argv);
    ask_crowd(&(struct question){ &report, &options, 0, options.seconds, 0, 1 }, options.ranks,
              options.lists);
    return report_end(&report, &options);
}
