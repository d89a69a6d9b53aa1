/* The first operations of a job, each job new: whatever a system touches, opens or loads when it
 * first needs it is in there, and in no other program's figures. Buffers have been written
 * before; a hundred barriers have passed. A round starts each system once for each operation and
 * size, in turns. */
#include "reports/question.h"
#include "reports/tutti_operations.h"

#include "harness/foreign.h"
#include "harness/progress.h"

#include <stdio.h>

enum { FIRST = 240, BARRIERS = 100, LEAST = 16 << 10, SIZES = 8, ROUNDS_LEAST = 3 };
enum { TUTTI, PEERS, COUNT = PEERS + 5, COLUMNS = 9 };

static const enum operation_id asked[] = { OP_BROADCAST, OP_ALL_REDUCE, OP_ALL_GATHER,
                                           OP_SENDRECV };
enum { ASKED = sizeof asked / sizeof asked[0] };

static const struct contender contenders[] = {
    [TUTTI] = { "tutti", "", NULL, 0, false, 0, 0, operation_run, operation_rewrite, OP_NONE },
    PEER("Open MPI", "openmpi"), PEER("MPICH", "mpich"), PEER("Open MPI 5", "openmpi5"),
    PEER("MPICH 5", "mpich5"), PEER("Intel MPI", "impi"), [COUNT] = { 0 }
};

/* Of one operation and size, a value each round: all of the first, the longest of them, and all of
 * them with the start-up; and of the last two the least of the peers. */
struct row { struct series total[COUNT], longest[COUNT], started[COUNT], best, best_started; };

static bool once(const struct question *p, int which, const struct task *task, struct row *row,
                 char *why)
{
    const struct setting *setting = contenders[which].setting;
    struct job_plan plan = {
        p->ranks, setting ? *setting : (struct setting){ NULL, NULL, false }, contenders,
        &tutti_system, 4096, operation_room(task->op, p->ranks, task->bytes)
    };
    const struct task barriers = {
        .form = FORM_BATCH, .samples = 1, .times = BARRIERS, .op = OP_BARRIER
    };
    struct series each = { 0 };
    struct job *job = job_start(&plan, why, REASON_BYTES);
    if (!job)
        return false;
    double up = job_up(job);
    bool can = job_can(job, task->op, false);
    bool done = can && job_run(job, &barriers, &each, NULL);
    each.n = 0;
    done = done && job_run(job, task, &each, NULL) && each.n == FIRST;
    if (!done)
        snprintf(why, REASON_BYTES, "%s",
                 !can ? "it has no such operation"
                     : job_why(job)[0] ? job_why(job)
                     : "it did not come to its end");
    job_end(job);
    double total = 0, longest = 0;
    for (size_t i = 0; i < each.n; i++) {
        total += each.at[i];
        longest = each.at[i] > longest ? each.at[i] : longest;
    }
    if (done) {
        series_add(&row->total[which], total);
        series_add(&row->longest[which], longest);
        series_add(&row->started[which], up + total);
    }
    series_free(&each);
    return done;
}

static double last(const struct series *s) { return s->at[s->n - 1]; }

static void round_of(const struct question *p, int round, const struct task *task, struct row *row,
                     char why[COUNT][REASON_BYTES])
{
    double best = 0, started = 0;
    for (int k = 0; k < COUNT; k++) {
        int which = round & 1 ? COUNT - 1 - k : k;
        struct task its = *task;
        /* a peer's ranks have a table of their own */
        its.contender = contenders[which].setting ? 0 : which;
        if (why[which][0]
            || (which != TUTTI
                && foreign_left_out(p->options->without, contenders[which].setting->system)))
            continue;
        if (!once(p, which, &its, row, why[which]) || which == TUTTI)
            continue;
        double took = last(&row->total[which]), all = last(&row->started[which]);
        best = best == 0 || took < best ? took : best;
        started = started == 0 || all < started ? all : started;
    }
    if (best > 0) {
        series_add(&row->best, best);
        series_add(&row->best_started, started);
    }
}

static void promise(const struct question *p, const char *what, const char *bytes, const char *how,
                    double ratio)
{
    char text[80];
    snprintf(text, sizeof text, "first %s, %s, %d ranks%s / MPI", what, bytes, p->ranks, how);
    report_promise(p->report, text, ratio, 1.5, UNIT_RATIO);
}

static void figures(const struct question *p, const char *what, size_t bytes,
                    const struct series of[COUNT])
{
    for (int i = 0; i < COUNT; i++) {
        if (!of[i].n)
            continue;
        struct figure *f = report_figure(p->report, what, contenders[i].name, UNIT_NS, p->ranks);
        figure_single(f, &of[i]);
        f->bytes = bytes;
        f->ratio = series_ratio(&of[i], &of[TUTTI]);
        snprintf(f->against, sizeof f->against, "%s", contenders[TUTTI].name);
    }
}

static void tell(const struct question *p, struct table *t, enum operation_id op, size_t bytes,
                 struct row *row)
{
    char text[COLUMNS][32], what[80];
    const char *name = operations[op].name, *cells[COLUMNS] = { name };
    struct ratio ratio = series_ratio(&row->total[TUTTI], &row->best),
                 started = series_ratio(&row->started[TUTTI], &row->best_started);
    double longest = 0;
    snprintf(what, sizeof what, "first %s", name);
    figures(p, what, bytes, row->total);
    snprintf(what, sizeof what, "started %s", name);
    figures(p, what, bytes, row->started);
    for (int i = PEERS; i < COUNT; i++) {
        double its = series_median(&row->longest[i]);
        longest = its > 0 && (longest == 0 || its < longest) ? its : longest;
    }
    cells[1] = unit_short(text[1], sizeof text[1], UNIT_BYTES, (double)bytes);
    const double values[COLUMNS] = {
        [2] = series_median(&row->total[TUTTI]), [3] = series_median(&row->best),
        [5] = series_median(&row->longest[TUTTI]), [6] = longest,
        [7] = series_median(&row->started[TUTTI])
    };
    for (int i = 2; i < COLUMNS; i++)
        cells[i] = values[i] > 0 ? unit_text(text[i], sizeof text[i], UNIT_NS, values[i]) : "-";
    if (ratio.n) {
        snprintf(text[4], sizeof text[4], "%.2f (%.2f-%.2f)", ratio.median, ratio.low, ratio.high);
        cells[4] = text[4];
        cells[8] = unit_text(text[8], sizeof text[8], UNIT_RATIO, started.median);
    }
    table_row(t, false, cells);
    if (!ratio.n)
        return;
    promise(p, name, cells[1], "", ratio.median);
    promise(p, name, cells[1], ", with the start", started.median);
}

void ask_first(const struct question *p)
{
    static const char *const heads[] = {
        "", "bytes", "tutti", "MPI", "/ it", "longest", "of MPI", "started", "/ MPI"
    };
    static const int width[] = { -10, 7, 8, 8, 17, 8, 8, 8, 6 };
    char why[COUNT][REASON_BYTES] = { "" };
    struct row rows[ASKED][SIZES] = { 0 };
    int sizes = 0;
    for (size_t bytes = LEAST; bytes <= p->options->most && sizes < SIZES; bytes *= 4)
        sizes++;
    if (p->options->quick)
        sizes = sizes > 1 ? 1 : sizes;
    struct table *t = report_table(p->report, COLUMNS, heads, width);
    snprintf(t->title, sizeof t->title, "The first %d operations, %d ranks", FIRST, p->ranks);
    snprintf(t->note, sizeof t->note,
             "Of a new job each time, behind %d barriers, to the last rank's end; MPI: the "
             "fastest. Longest: of single ones. Started: with the start-up; of an MPI MPI_Init "
             "alone, here also the fork of the ranks. Medians; / it: of the ratios of rounds, "
             "middle half.",
             BARRIERS);
    double began = stamp_seconds();
    int least = p->options->quick ? 1 : ROUNDS_LEAST;
    for (int round = 0;
         round < least || (!p->options->quick && stamp_seconds() - began < p->seconds); round++)
        for (int i = 0; i < ASKED * sizes; i++) {
            const struct task task = {
                .form = FORM_FIRST, .samples = FIRST, .times = 1,
                .bytes = (size_t)LEAST << 2 * (i % sizes), .op = asked[i / sizes]
            };
            double share = (stamp_seconds() - began) / p->seconds;
            progress_show(p->done + p->share * (share < 1 ? share : 1), "%d ranks: first %s",
                          p->ranks, operations[task.op].name);
            round_of(p, round, &task, &rows[i / sizes][i % sizes], why);
        }
    for (int i = 0; i < ASKED * sizes; i++) {
        struct row *row = &rows[i / sizes][i % sizes];
        tell(p, t, asked[i / sizes], (size_t)LEAST << 2 * (i % sizes), row);
        for (int k = 0; k < COUNT; k++) {
            series_free(&row->total[k]);
            series_free(&row->longest[k]);
            series_free(&row->started[k]);
        }
        series_free(&row->best);
        series_free(&row->best_started);
    }
    for (int i = 0; i < COUNT; i++)
        if (why[i][0])
            report_remark(p->report, i == TUTTI, "first operations of %s not measured: %s",
                          contenders[i].name, why[i]);
}
