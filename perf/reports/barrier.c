/* The library's barrier and each of its algorithms forced, barriers out of the textbook that do
 * nothing but that, and those of other systems, all in turns. Also the 4-byte all_reduce, which is
 * a barrier that carries something. */
#include "reports/barrier_contenders.h"
#include "reports/question.h"

#include "coll/select.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TUTTI, FOUR_BYTES, HOUSE_MOST = 6 };

static const struct contender fixed[] = {
    { "tutti", "tutti_barrier, the algorithm chosen by the library", NULL, 0, false, 0, 0,
      barriers_tutti, NULL, OP_NONE },
    { "tutti all_reduce 4 B", "tutti_all_reduce of one float", NULL, 0, false, 0, 0,
      barriers_all_reduce, NULL, OP_NONE },
};
static const struct contender textbook[] = {
    { "bare exchange", "two ranks, two stores, two loads", NULL, 2, true, 0, 0, barriers_exchange,
      NULL, OP_NONE },
    { "exchange with waits", "the bare exchange, waiting as tutti does", NULL, 2, true, 0, 0,
      barriers_exchange_waits, NULL, OP_NONE },
    { "bare flags", "one flag a rank, read by all", NULL, 0, false, 0, 0, barriers_flags,
      NULL, OP_NONE },
    { "bare central", "one counter, one sense", NULL, 0, false, 0, 0, barriers_central,
      NULL, OP_NONE },
    { "dissemination", "log2 N messages a rank", NULL, 0, false, 0, 0, barriers_dissemination,
      NULL, OP_NONE },
    { "MCS tree", "arrival by fours, departure by twos", NULL, 0, false, 0, 0, barriers_mcs,
      NULL, OP_NONE },
    { "pthread_barrier", "the C library's, shared between processes", NULL, 0, false, 0, 0,
      barriers_posix, NULL, OP_NONE },
};
_Static_assert(sizeof fixed / sizeof *fixed + sizeof textbook / sizeof *textbook + HOUSE_MOST + 6
                   <= CONTENDERS_MAX,
               "all take part");
static const struct contender peers[] = { MPI_AND_GLOO, PEER("GNU OpenMP", "gomp"),
                                          PEER("LLVM OpenMP", "lomp") };

/* One row for each barrier of the house, so that a new one is measured without a line here. Never
 * freed: jobs look at it. */
static struct contender *rows(void)
{
    static struct contender all[CONTENDERS_MAX + 1];
    static struct setting forced[HOUSE_MOST];
    static char names[HOUSE_MOST][32], rules[HOUSE_MOST][96];
    int n = 0, house = 0;
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
        all[n++] = fixed[i];
    for (const struct algorithm *a = select_all(); a->name; a++)
        if (a->kind == KIND_BARRIER && house < HOUSE_MOST) {
            snprintf(names[house], sizeof names[0], "tutti %.20s", a->name);
            snprintf(rules[house], sizeof rules[0], "barrier:-inf=%.20s;barrier/crowded:-inf=%.20s",
                     a->name, a->name);
            forced[house] = (struct setting){ .rules = rules[house] };
            all[n] = fixed[TUTTI];
            all[n].name = names[house];
            all[n++].setting = &forced[house++];
        }
    for (size_t i = 0; i < sizeof textbook / sizeof *textbook; i++)
        all[n++] = textbook[i];
    for (size_t i = 0; i < sizeof peers / sizeof *peers; i++)
        all[n++] = peers[i];
    all[n] = (struct contender){ 0 };
    return all;
}

static int row_of(const struct team *team, const char *name)
{
    for (int i = 0; i < team->count; i++)
        if (!strcmp(team->contenders[i].name, name))
            return i;
    abort();
}

static void distribution(struct report *report, const struct team *team, const struct measured *m,
                         const char *beside, int first, int last)
{
    char name[96], text[32];
    int reference = m[row_of(team, "bare exchange")].in ? row_of(team, "bare exchange")
                                                        : row_of(team, "bare central"),
        hue = 1;
    snprintf(name, sizeof name, "Barrier of %d ranks%s, beside %s", team->ranks,
             team->crowded ? " on fewer CPUs" : "", beside);
    struct plot *p = report_distribution(report, name, "time until the last rank is through",
                                         "share of barriers");
    for (int i = 0; i < team->count; i++) {
        bool always = i == TUTTI || i == reference;
        if (!m[i].in || i == FOUR_BYTES || (!always && (i < first || i > last)))
            continue;
        snprintf(name, sizeof name, "%s %s", team->contenders[i].name,
                 unit_text(text, sizeof text, UNIT_NS, series_median(&m[i].single)));
        curve_cumulative(plot_curve(p, name,
                                    i == TUTTI ? 0
                                        : i == reference ? 7
                                        : hue),
                         &m[i].single);
        hue += !always;
        hue += hue == 7;
    }
}

static void tell(struct report *report, const struct team *team, const struct measured *m,
                 int reference)
{
    static const char *const heads[] = {
        "", "batch", "min", "p50", "p99", "max", "ratio", "spread"
    };
    static const int width[] = { -20, 8, 8, 8, 8, 8, 7, 11 };
    struct table *t = report_table(report, 8, heads, width);
    snprintf(t->title, sizeof t->title, "Barrier, %d ranks, %s", team->ranks,
             team->crowded ? "more than CPUs" : "a CPU each");
    snprintf(t->note, sizeof t->note,
             "batch: one of many back to back, median of rounds. min to max: %s. ratio: batch "
             "against %s, "
             "median of the ratios of %zu rounds; spread: the middle half of them.",
             team->crowded ? "each from the end of the one before"
                           : "started together, until the last is through",
             team->contenders[reference].name, m[reference].rounds.n);
    for (int i = 0; i < team->count; i++) {
        char text[8][32], low[32], high[32];
        const char *cells[8] = { team->contenders[i].name };
        if (!m[i].in || !m[i].rounds.n)
            continue;
        struct figure *f = report_figure(report, i == FOUR_BYTES ? "all_reduce" : "barrier",
                                         team->contenders[i].name, UNIT_NS, team->ranks);
        figure_single(f, &m[i].single);
        figure_rounds(f, &m[i].rounds);
        f->bytes = i == FOUR_BYTES ? 4 : 0;
        f->ratio = series_ratio(&m[i].rounds, &m[reference].rounds);
        snprintf(f->against, sizeof f->against, "%s", team->contenders[reference].name);
        const double values[] = { f->value, f->least, f->median, f->p99, f->most };
        for (int k = 0; k < 5; k++)
            cells[k + 1] = unit_text(text[k], sizeof text[k], UNIT_NS, values[k]);
        cells[6] = unit_text(text[6], sizeof text[6], UNIT_RATIO, f->ratio.median);
        snprintf(text[7], sizeof text[7], "%.12s-%.12s",
                 unit_text(low, sizeof low, UNIT_RATIO, f->ratio.low),
                 unit_text(high, sizeof high, UNIT_RATIO, f->ratio.high));
        cells[7] = text[7];
        table_row(t, i == TUTTI, cells);
    }
}

struct barriers {
    const struct question *part;
    struct team team;
    struct measured measured[CONTENDERS_MAX];
    int moments;
};

struct barriers *ask_barriers_open(const struct question *p, int moments)
{
    struct barriers *b = calloc(1, sizeof *b);
    if (!b) {
        perror("barrier");
        abort();
    }
    b->part = p;
    b->moments = moments;
    team_open(&b->team,
              &(struct team_plan){ .ranks = p->ranks,
                                   .contenders = rows(),
                                   .shared_bytes = 4096,
                                   .without = p->options->without,
                                   .done = p->done });
    return b;
}

void ask_barriers_measure(struct barriers *b, double done, double share)
{
    const struct question *p = b->part;
    struct effort e = {
        p->seconds / b->moments, p->options->quick, true, 0, done,
        share, OP_BARRIER, false, b->moments
    };
    measure(&b->team, &e, b->measured);
}

void ask_barriers_close(struct barriers *b)
{
    const struct team *team = &b->team;
    const struct measured *m = b->measured;
    struct report *report = b->part->report;
    team_close(&b->team);
    int exchange = row_of(team, "bare exchange"), central = row_of(team, "bare central"),
        flags = row_of(team, "bare flags");
    int posix = row_of(team, "pthread_barrier");
    tell(report, team, m, m[exchange].in ? exchange : team->crowded ? central : flags);
    distribution(report, team, m, "its own kinds and the textbook's", FOUR_BYTES + 1, posix);
    bool any = false;
    for (int i = posix + 1; i < team->count; i++)
        any |= m[i].in;
    if (any)
        distribution(report, team, m, "those of other systems", posix, team->count - 1);
    remark_systems(report, team, m);
    measured_free(b->measured, team->count);
    free(b);
}

void ask_barrier(const struct question *p)
{
    struct barriers *b = ask_barriers_open(p, 1);
    ask_barriers_measure(b, p->done, p->share);
    ask_barriers_close(b);
}
