/* Measures the cost of first use: the first operations of a job. All other programs leave them
 * out. */
#include "reports/question.h"

static const struct perf_program program = {
    .name = "first",
    .question =
        "How long do the first 240 operations of a comm take, while its memory is touched for the "
        "first time, and with the start-up?",
    .ranks = "2",
    .seconds = 60,
    .peers = true,
    .sizes = true,
    .most = 256 << 10,
    .examples = "  first\n  first -n 2,4 --most 64k\n  first --strict --without mpich\n",
};

int main(int argc, char **argv)
{
    return ask_program(&program, argc, argv, ask_first);
}
