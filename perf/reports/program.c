/* What the mains of most programs have in common. */
#include "reports/question.h"

#include "harness/start.h"

int ask_program(const struct perf_program *program, int argc, char **argv,
                void (*one)(const struct question *p))
{
    struct perf_options o;
    struct report report;
    if (start_child())
        return 0;
    report_open(&report, program, &o, argc, argv);
    for (int k = 0; k < o.lists; k++)
        one(&(struct question){ &report, &o, o.ranks[k], o.seconds, (double)k / o.lists,
                                1.0 / o.lists });
    check_consistency(&report);
    check_promises(&report, false);
    return report_end(&report, &o);
}
