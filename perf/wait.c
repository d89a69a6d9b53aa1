/* Measures what a long wait costs. */
#include "reports/question.h"

static const struct perf_program program = {
    .name = "wait",
    .question =
        "How much CPU time does a rank burn that waits 100 ms for the last one, and how soon after "
        "it is it back?",
    .ranks = "2,8",
    .seconds = 24,
    .peers = true,
    .examples = "  wait -n 2,4,8\n  wait --strict --without all\n",
};

int main(int argc, char **argv)
{
    return ask_program(&program, argc, argv, ask_wait);
}
