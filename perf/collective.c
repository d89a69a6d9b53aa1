/* Measures collectives, from four bytes to many, beside other systems and the copies that each of
 * them needs. */
#include "base/guess.h"
#include "reports/question.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(const struct perf_options *o);

static const struct perf_program program = {
    .name = "collective",
    .question =
        "How long does a collective take, from four bytes to many, beside other systems, and "
        "beside the copies that none can do without?",
    .ranks = "2,8",
    .seconds = 15,
    .sizes = true,
    .peers = true,
    .works = true,
    .words = "OPERATION...",
    .check = check,
    .examples =
        "  collective all_reduce -n 2\n  collective broadcast gather --most 1M --seconds 5\n  "
        "collective --hot --html collective.html\n\n"
                "operations: all_reduce (the default) broadcast reduce reduce_scatter\n  "
                "all_gather gather scatter all_to_all scan exscan sendrecv; all;\n  "
                "pingpong, by its name only\n",
};

static _Noreturn void refuse(const char *word)
{
    struct guess g;
    guess_begin(&g, word);
    for (int op = OP_BARRIER + 1; op < OPS; op++)
        guess_add(&g, operations[op].name);
    if (g.best)
        perf_refuse("there is no operation '%.40s'; did you mean %s?", word, g.best);
    perf_refuse("there is no operation '%.40s'", word);
}

static int named(const struct perf_options *o, enum operation_id to[OPS])
{
    int n = 0;
    for (int i = 0; i < o->word_count; i++) {
        bool all = !strcmp(o->words[i], "all"), known = false;
        for (int op = OP_BARRIER + 1; op < OPS; op++)
            if (((all && op < OPS_ALL) || !strcmp(o->words[i], operations[op].name)) && n < OPS) {
                to[n++] = (enum operation_id)op;
                known = true;
            }
        if (!known) {
            refuse(o->words[i]);
        }
    }
    if (!n)
        to[n++] = OP_ALL_REDUCE;
    return n;
}

static void check(const struct perf_options *o)
{
    enum operation_id chosen[OPS];
    named(o, chosen);
}

int main(int argc, char **argv)
{
    struct perf_options options;
    struct report report;
    enum operation_id chosen[OPS];
    perf_options(&options, &program, argc, argv);
    struct ask_sizes sizes = {
        chosen, named(&options, chosen), 4, options.most, options.work, options.quick, 1
    };
    stamp_calibrate();
    report_begin(&report, &program);
    for (int k = 0; k < options.lists; k++)
        ask_collective(&(struct question){ &report, &options, options.ranks[k],
                                           options.seconds * sizes.count, (double)k / options.lists,
                                           1.0 / options.lists },
                       &sizes);
    check_consistency(&report);
    check_promises(&report, false);
    return report_end(&report, &options);
}
