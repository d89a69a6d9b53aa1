/* What a barrier pays for what it promises. */
#include "parts/part.h"

static const struct perf_program program = {
    .name = "promises",
    .question = "What do a barrier's promises cost: that mismatches are found, notes taken, all or none succeed, and the dead noticed?",
    .ranks = "2",
    .seconds = 12,
    .examples = "  promises\n  promises --seconds 30 --strict --json promises.json\n",
};

int main(int argc, char **argv)
{
    return part_program(&program, argc, argv, part_promised);
}
