/* Measures the time until the ranks of a job have done their first barrier. */
#include "harness/start.h"
#include "reports/question.h"

static const struct perf_program program = {
    .name = "start",
    .question =
        "How long does it take from the start of a job to the end of its first barrier, beside "
        "the bare program and other launchers?",
    .ranks = "2,8,64",
    .seconds = 10,
    .launches = true,
    .peers = true,
    .ranks_most = START_RANKS_MAX,
    .examples = "  start -n 2,8\n  start --without gloo --html start.html\n"
                "  start -n 256,512,1024 --strict\n",
};

int main(int argc, char **argv)
{
    return ask_program(&program, argc, argv, ask_start);
}
