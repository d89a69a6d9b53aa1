/* Measures how the time of an operation grows, and where it grows faster than the work. */
#include "reports/question.h"

static const struct perf_program program = {
    .name = "growth",
    .question =
        "How does an operation's time grow with the ranks, 1 to 64, and with the bytes, 4 to many, "
        "and where are the kinks?",
    .ranks = "2",
    .seconds = 30,
    .sizes = true,
    .most = (size_t)256 << 20,
    .examples =
        "  growth --html growth.html\n  growth --most 1G --seconds 60\n  growth -n 2,8 --most "
        "4M\n\n"
                "--ranks is for more and more bytes; more and more ranks, with messages of up "
                "to\n1 MiB, get as many seconds once more.\n",
};

int main(int argc, char **argv)
{
    struct perf_options o;
    struct report report;
    report_open(&report, &program, &o, argc, argv);
    double share = 1.0 / (o.lists + 1);
    ask_growth_ranks(&(struct question){ &report, &o, 0, o.seconds, 0, share });
    for (int k = 0; k < o.lists; k++)
        ask_growth_sizes(&(struct question){ &report, &o, o.ranks[k], o.seconds, share * (k + 1),
                                             share },
                         o.most);
    return report_end(&report, &o);
}
