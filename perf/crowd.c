/* Measures more ranks than CPUs: the barrier of more and more of them, and each collective beside
 * its floor. */
#include "os/cpu.h"
#include "reports/question.h"

static const struct perf_program program = {
    .name = "crowd",
    .question =
        "How long does a barrier of more and more ranks on the same CPUs take, beside those of "
        "other systems? And each collective, beside what its switches and copies cost?",
    .seconds = 80,
    .peers = true,
    .examples = "  crowd --html crowd.html\n  crowd -n 2,4,8,16,32 --seconds 60 --without mpich\n",
};

/* Beyond, an all_to_all of 1 MiB takes longer than all the others together. */
enum { SHAPES_RANKS_MOST = 16 };

int main(int argc, char **argv)
{
    struct perf_options options;
    struct report report;
    report_open(&report, &program, &options, argc, argv);
    static const int usual[] = { 2, 4 };          /* ranks for each CPU */
    const double barriers = 0.2;
    ask_crowd(&(struct question){ &report, &options, 0, barriers * options.seconds, 0, barriers },
              options.ranks, options.lists);
    int asked[PERF_LISTS_MAX], count = 0, cpus = cpu_allowed();
    for (int i = 0; i < (options.lists ? options.lists : 2); i++) {
        int ranks = options.lists ? options.ranks[i] : usual[i] * cpus;
        if (ranks > cpus && ranks <= SHAPES_RANKS_MOST)
            asked[count++] = ranks;
    }
    for (int i = 0; i < count; i++)
        ask_shapes(&(struct question){ &report, &options, asked[i],
                                       (1 - barriers) * options.seconds / count,
                                       barriers + (1 - barriers) * i / count,
                                       (1 - barriers) / count });
    return report_end(&report, &options);
}
