/* Measures the time until the ranks of a job have done their first barrier. */
#include "reports/question.h"

static const struct perf_program program = {
    .name = "start",
    .question =
        "How long does it take from the start of a job to the end of its first barrier, beside "
        "other launchers?",
    .ranks = "2,8,64",
    .seconds = 10,
    .launches = true,
    .peers = true,
    .examples = "  start -n 2,8\n  start --without gloo --html start.html\n",
};

int main(int argc, char **argv)
{
    return ask_program(&program, argc, argv, ask_start);
}
