/* What must be, and where it should come to, as data: a row each. A ratio is the median of the
 * ratios of rounds of one measurement, so its two figures were taken in turns. Rows over many sizes
 * or operations are folded to the worst, or to the median, of their ratios. */
#include "reports/question.h"

#include <stdio.h>
#include <string.h>

/* a size that no message has: a row for all of 4 B to `most` */
enum { ANY_SIZE = 1, PEERS_MOST = 2 };
enum { LARGE = 64 << 20, MANY_RANKS = 16 };
enum fold { WORST, MEDIAN };

struct must {
    const char *text; /* of the row; %s: the operation that is worst, where the row is about many */
    int ranks;
    /* of the figures; OTHERS: every collective but all_reduce; ALL: all of them */
    const char *what;
    const char *top, *bottom;              /* contenders: top / bottom. "MPI": the faster of both */
    size_t bytes, most;                    /* ANY_SIZE: all to `most` */
    enum fold fold;
    bool at_least;
    double must, aim;
    enum unit unit;                     /* UNIT_NS: top alone; UNIT_SHARE: the ratio in percent */
};

static const char OTHERS[] = "others", ALL[] = "all";
enum { KI = 1 << 10, MI = 1 << 20 };
#define FASTER(text, ranks, what, than, bytes, must, aim) { text, ranks, what, than, "tutti", \
                                                            bytes, 0, WORST, true, must, aim, \
                                                            UNIT_RATIO }
#define FASTER_ARENA(text, bytes, must, aim) { text, 2, "all_reduce", "MPI", "tutti arena", bytes, \
                                               0, WORST, true, must, aim, UNIT_RATIO }
#define AT_MOST(text, ranks, what, of, than, must, aim) { text, ranks, what, of, than, 0, 0, \
                                                          WORST, false, must, aim, UNIT_RATIO }
#define FLOOR(text, who, bytes, must) { text, 2, "all_reduce", "floor", who, bytes, 0, WORST, \
                                        true, must, 85, UNIT_SHARE }
#define ALL_SIZES(text, ranks, what, than, most, fold, must, aim) \
    { text, ranks, what, than, "tutti", ANY_SIZE, most, fold, true, must, aim, UNIT_RATIO }

static const struct must musts[] = {
    AT_MOST("barrier, 2 ranks / bare exchange", 2, "barrier", "tutti", "bare exchange", 1.2, 1.1),
    AT_MOST("barrier, 2 / exchange with waits", 2, "barrier", "tutti", "exchange with waits", 1.1,
            1.05),
    FASTER("barrier, 2: Open MPI / it", 2, "barrier", "Open MPI", 0, 1.6, 2),
    FASTER("barrier, 2: MPICH / it", 2, "barrier", "MPICH", 0, 3.8, 5),
    FASTER("barrier, 2: GNU OpenMP / it", 2, "barrier", "GNU OpenMP", 0, 1.5, 2),
    FASTER("barrier, 2: LLVM OpenMP / it", 2, "barrier", "LLVM OpenMP", 0, 1.5, 2),
    FASTER("barrier, 2: pthread_barrier / it", 2, "barrier", "pthread_barrier", 0, 3, 10),
    FASTER("barrier, 2: Gloo / it", 2, "barrier", "Gloo", 0, 250, 400),
    AT_MOST("barrier, 4 ranks / bare central", 4, "barrier", "tutti", "bare central", 1.5, 1.2),
    AT_MOST("barrier, 8 ranks / bare central", 8, "barrier", "tutti", "bare central", 1.3, 1.2),
    FASTER("barrier, 8: Open MPI / it", 8, "barrier", "Open MPI", 0, 2, 3),
    FASTER("barrier, 8: LLVM OpenMP / it", 8, "barrier", "LLVM OpenMP", 0, 1.2, 1.7),
    FASTER("barrier, 8: pthread_barrier / it", 8, "barrier", "pthread_barrier", 0, 1.35, 8),
    { "CPU burnt in a wait of 100 ms, 2 ranks", 2, "cpu burnt", "tutti", NULL, 0, 0, WORST, false,
      0.15e6, 0.06e6, UNIT_NS },
    { "all_reduce 4 B / barrier, 2 ranks", 2, "all_reduce", "tutti all_reduce 4 B", "barrier", 4, 0,
      WORST, false, 1.3, 1.1, UNIT_RATIO },
    FASTER("all_reduce 4 B: Open MPI / it", 2, "all_reduce", "Open MPI", 4, 1.9, 2.5),
    FASTER("all_reduce 1 KiB: MPI / it", 2, "all_reduce", "MPI", KI, 1.9, 2.5),
    FASTER_ARENA("all_reduce 1 KiB, arena: MPI / it", KI, 1.9, 2.5),
    FASTER("all_reduce 64 KiB: MPI / it", 2, "all_reduce", "MPI", 64 * KI, 1.9, 2.5),
    FASTER_ARENA("all_reduce 64 KiB, arena: MPI / it", 64 * KI, 4, 6),
    FASTER("all_reduce 1 MiB: MPI / it", 2, "all_reduce", "MPI", MI, 1.0, 1.3),
    FASTER_ARENA("all_reduce 1 MiB, arena: MPI / it", MI, 3, 4),
    FASTER("all_reduce 16 MiB: MPI / it", 2, "all_reduce", "MPI", 16 * MI, 1.3, 1.5),
    FASTER_ARENA("all_reduce 16 MiB, arena: MPI / it", 16 * MI, 2.5, 3.5),
    FASTER("all_reduce 256 MiB: MPI / it", 2, "all_reduce", "MPI", 256 * MI, 2, 2.5),
    FASTER_ARENA("all_reduce 256 MiB, arena: MPI / it", 256 * MI, 3.5, 5),
    FLOOR("all_reduce 16 MiB: of the floor", "tutti", 16 * MI, 65),
    FLOOR("all_reduce 256 MiB: of the floor", "tutti", 256 * MI, 60),
    FLOOR("all_reduce 256 MiB, arena: of the floor", "tutti arena", 256 * MI, 75),
    ALL_SIZES("all_reduce to 1 MiB: Gloo / it, worst", 2, "all_reduce", "Gloo", MI, WORST, 10, 50),
    ALL_SIZES("others, 2, worst: MPI / %s", 2, OTHERS, "MPI", 16 * MI, WORST, 1.0, 1.5),
    ALL_SIZES("others, 2, median: MPI / %s", 2, OTHERS, "MPI", 16 * MI, MEDIAN, 1.3, 2),
    ALL_SIZES("others, 4, worst: MPI / %s", 4, OTHERS, "MPI", 16 * MI, WORST, 1.0, 1.5),
    ALL_SIZES("others, 4, median: MPI / %s", 4, OTHERS, "MPI", 16 * MI, MEDIAN, 1.3, 2),
    ALL_SIZES("all, 4, worst: Open MPI / %s", 4, ALL, "Open MPI", 16 * MI, WORST, 1.0, 1.5),
    ALL_SIZES("all, 8, worst: Open MPI / %s", 8, ALL, "Open MPI", 16 * MI, WORST, 1.0, 1.5),
    { "start, 2 ranks: MPICH's mpirun / it", 2, "start", "MPICH", "tutti run", 0, 0, WORST, true,
      10, 20, UNIT_RATIO },
    { "start, 8 ranks: MPICH's mpirun / it", 8, "start", "MPICH", "tutti run", 0, 0, WORST, true,
      15, 40, UNIT_RATIO },
    { "start, 64 ranks: MPICH's mpirun / it", 64, "start", "MPICH", "tutti run", 0, 0, WORST, true,
      20, 60, UNIT_RATIO },
};

/* "MPI" is both; any other name is itself. Returns how many. */
static int candidates(const char *name, const char *to[PEERS_MOST])
{
    bool both = !strcmp(name, "MPI");
    to[0] = both ? "Open MPI" : name;
    to[1] = "MPICH";
    return both ? 2 : 1;
}

static bool is_there(const struct report *r, const char *contender)
{
    bool any = false;
    for (int i = 0; i < r->figure_count; i++)
        any |= !strcmp(r->figures[i].contender, contender);
    return any;
}

/* The same row of a library that is as fast as the floor. */
static struct must at_floor(const struct must *m)
{
    struct must floor = *m;
    floor.bottom = "floor";
    return floor;
}

size_t promise_rounds(const char *what, int ranks, size_t bytes)
{
    return bytes > LARGE ? 3 : !strcmp(what, "start") && ranks > MANY_RANKS ? 2 : 5;
}

/* 0: not measured. */
static double ratio_at(const struct report *r, const struct must *m, const char *what, size_t bytes)
{
    const char *names[PEERS_MOST];
    double least = 0;
    /* all_reduce of 4 bytes is held against a barrier */
    bool own = m->bottom && !strcmp(m->bottom, "barrier");
    const struct figure *bottom = m->bottom
        ? report_find(r, own ? "barrier" : what, own ? "tutti" : m->bottom, m->ranks,
                      own ? 0 : bytes)
        : NULL;
    for (int i = 0, n = candidates(m->top, names); i < n; i++) {
        const struct figure *top = report_find(r, what, names[i], m->ranks, bytes);
        if (!top || (m->bottom && !bottom))
            continue;
        double ratio = m->bottom ? series_ratio(&top->rounds, &bottom->rounds).median : top->value;
        least = least == 0 || ratio < least ? ratio : least;
    }
    return least;
}

/* Whether the ratio there is of fewer rounds than it takes. */
static bool few_at(const struct report *r, const struct must *m, const char *what, size_t bytes)
{
    const char *names[PEERS_MOST];
    size_t need = promise_rounds(what, m->ranks, bytes);
    bool own = m->bottom && !strcmp(m->bottom, "barrier"), few = false;
    const struct figure *bottom = m->bottom && !own
        ? report_find(r, what, m->bottom, m->ranks, bytes)
        : NULL;
    for (int i = 0, n = candidates(m->top, names); i < n; i++) {
        const struct figure *top = report_find(r, what, names[i], m->ranks, bytes);
        if (top && (bottom || !m->bottom || own))
            few |= top->rounds.n < need || (bottom && bottom->rounds.n < need);
    }
    return few;
}

/* Of all that a row is about; a size for which there was no time at all counts. */
static bool few_of(const struct report *r, const struct must *m)
{
    bool many = m->bytes == ANY_SIZE, each = m->what == OTHERS || m->what == ALL;
    bool few = many && r->no_time[m->ranks] && r->no_time[m->ranks] <= m->most;
    for (int op = OP_ALL_REDUCE; op < (each ? OPS_ALL : OP_ALL_REDUCE + 1); op++)
        for (size_t bytes = many ? 4 : m->bytes; bytes <= (many ? m->most : m->bytes) && !few;
             bytes = bytes ? bytes * 4 : 1)
            if (op != OP_ALL_REDUCE || m->what != OTHERS)
                few = few_at(r, m, each ? operations[op].name : m->what, bytes);
    return few;
}

/* Which sizes of which operations a row about the worst of many is not kept at: one line
 * an operation. */
static void tell_below(struct report *r, const struct must *m)
{
    const char *row = m->text;
    char size[32], floor[32];
    const struct must best = at_floor(m);
    for (int op = OP_ALL_REDUCE; op < OPS_ALL; op++) {
        double worst = m->must;
        size_t at = 0;
        int below = 0, sizes = 0;
        for (size_t bytes = 4; bytes <= m->most && !(op == OP_ALL_REDUCE && m->what == OTHERS);
             bytes *= 4) {
            double ratio = ratio_at(r, m, operations[op].name, bytes);
            sizes += ratio > 0;
            below += ratio > 0 && ratio < m->must;
            if (ratio > 0 && ratio < worst) {
                worst = ratio;
                at = bytes;
            }
        }
        double there = below ? ratio_at(r, &best, operations[op].name, at) : 0;
        floor[0] = '\0';
        if (there > 0)
            snprintf(floor, sizeof floor, ", the floor %.2f", there);
        if (below)
            report_remark(r, false, "%.*s: %s below %.2g at %d of %d sizes, worst %.2f at %s%s",
                          (int)strcspn(row, ":"), row, operations[op].name, m->must, below, sizes,
                          worst, unit_text(size, sizeof size, UNIT_BYTES, (double)at), floor);
    }
}

static double folded(const struct report *r, const struct must *m, const char *what)
{
    struct series all = { 0 };
    if (m->bytes != ANY_SIZE)
        return ratio_at(r, m, what, m->bytes) * (m->unit == UNIT_SHARE ? 100 : 1);
    for (size_t bytes = 4; bytes <= m->most; bytes *= 4) {
        double ratio = ratio_at(r, m, what, bytes);
        if (ratio > 0)
            series_add(&all, ratio);
    }
    double value = series_quantile(&all, m->fold == WORST ? 0 : 0.5);
    series_free(&all);
    return value;
}

/* The least over the operations the row is about, and which one that was. */
static double least_of(const struct report *r, const struct must *m, const char **which)
{
    double least = 0;
    *which = "it";
    for (int op = OP_ALL_REDUCE; op < OPS_ALL; op++) {
        double value = op == OP_ALL_REDUCE && m->what == OTHERS ? 0
                                                                : folded(r, m, operations[op].name);
        if (value > 0 && (least == 0 || value < least)) {
            least = value;
            *which = operations[op].name;
        }
    }
    return least;
}

void check_promises(struct report *r, bool all)
{
    for (size_t i = 0; i < sizeof musts / sizeof *musts; i++) {
        const struct must *m = &musts[i];
        struct promise p = {
            .limit = m->must, .aim = m->aim, .unit = m->unit, .at_least = m->at_least
        };
        const struct must best = at_floor(m);
        const char *at = strstr(m->text, "%s"), *which = "", *its;
        p.value = at ? least_of(r, m, &which) : folded(r, m, m->what);
        p.floor = m->unit != UNIT_RATIO || !m->at_least ? 0
            : at ? least_of(r, &best, &its)
            : folded(r, &best, m->what);
        snprintf(p.what, sizeof p.what, "%.*s%s", at ? (int)(at - m->text) : 60, m->text, which);
        p.measured = p.value > 0;
        p.few = p.measured && few_of(r, m);
        if (p.measured || all)
            report_judge(r, &p);
        if (at && m->fold == WORST)
            tell_below(r, m);
        if (p.measured && !strcmp(m->top, "MPI")
            && !(is_there(r, "Open MPI") && is_there(r, "MPICH")))
            report_remark(r, false, "only one MPI was measured: \"MPI\" is not the faster of two");
    }
}
