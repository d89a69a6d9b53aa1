/* Measures a barrier, beside bare barriers without any checks, and beside those of other
 * systems. */
#include "reports/question.h"

static const struct perf_program program = {
    .name = "barrier",
    .question =
        "How long does a barrier take, beside those of other systems, and barriers that know "
        "nothing of deaths, deadlines and mistakes?",
    .ranks = "2,8",
    .seconds = 8,
    .peers = true,
    .examples =
        "  barrier -n 2,4,8\n  barrier -n 2 --seconds 20 --html barrier.html\n  barrier --strict "
        "--json barrier.json\n",
};

int main(int argc, char **argv)
{
    return ask_program(&program, argc, argv, ask_barrier);
}
