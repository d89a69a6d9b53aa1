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
enum { TUTTI, OPENMPI, MPICH, COUNT };

static const enum operation_id asked[] = { OP_BROADCAST, OP_ALL_REDUCE, OP_ALL_GATHER,
                                           OP_SENDRECV };
enum { ASKED = sizeof asked / sizeof asked[0] };

static const struct contender contenders[] = {
    [TUTTI] = { "tutti", "", NULL, 0, false, 0, 0, operation_run, operation_rewrite, OP_NONE },
    PEER("Open MPI", "openmpi"), PEER("MPICH", "mpich"), [COUNT] = { 0 }
};

/* Of one operation and size, a value each round: all of the first, and the longest of them. */
struct row { struct series total[COUNT], longest[COUNT], best; };

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
    }
    series_free(&each);
    return done;
}

static void round_of(const struct question *p, int round, const struct task *task, struct row *row,
                     char why[COUNT][REASON_BYTES])
{
    double best = 0;
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
        double took = row->total[which].at[row->total[which].n - 1];
        best = best == 0 || took < best ? took : best;
    }
    if (best > 0)
        series_add(&row->best, best);
}

static void tell(const struct question *p, struct table *t, enum operation_id op, size_t bytes,
                 struct row *row)
{
    char text[8][32], what[80];
    const char *cells[8] = { operations[op].name };
    struct ratio ratio = series_ratio(&row->total[TUTTI], &row->best);
    double longest = 0;
    snprintf(what, sizeof what, "first %s", operations[op].name);
    for (int i = 0; i < COUNT; i++) {
        cells[2 + i] = "-";
        if (!row->total[i].n)
            continue;
        struct figure *f = report_figure(p->report, what, contenders[i].name, UNIT_NS, p->ranks);
        figure_single(f, &row->total[i]);
        f->bytes = bytes;
        f->ratio = series_ratio(&row->total[i], &row->total[TUTTI]);
        snprintf(f->against, sizeof f->against, "%s", contenders[TUTTI].name);
        cells[2 + i] = unit_text(text[2 + i], sizeof text[0], UNIT_NS, f->median);
        double its = series_median(&row->longest[i]);
        longest = i != TUTTI && (longest == 0 || its < longest) ? its : longest;
    }
    cells[1] = unit_short(text[1], sizeof text[1], UNIT_BYTES, (double)bytes);
    snprintf(text[5], sizeof text[5], "%.2f (%.2f-%.2f)", ratio.median, ratio.low, ratio.high);
    cells[5] = ratio.n ? text[5] : "-";
    cells[6] = row->longest[TUTTI].n
        ? unit_text(text[6], sizeof text[6], UNIT_NS, series_median(&row->longest[TUTTI]))
        : "-";
    cells[7] = longest > 0 ? unit_text(text[7], sizeof text[7], UNIT_NS, longest) : "-";
    table_row(t, false, cells);
    if (!ratio.n)
        return;
    snprintf(what, sizeof what, "first %s, %s, %d ranks / MPI", operations[op].name, cells[1],
             p->ranks);
    report_promise(p->report, what, ratio.median, 1.5, UNIT_RATIO);
}

void ask_first(const struct question *p)
{
    static const char *const heads[] = {
        "", "bytes", "tutti", "Open MPI", "MPICH", "/ faster MPI", "longest", "of MPI"
    };
    static const int width[] = { -10, 8, 9, 9, 9, 18, 8, 8 };
    char why[COUNT][REASON_BYTES] = { "" };
    struct row rows[ASKED][SIZES] = { 0 };
    int sizes = 0;
    for (size_t bytes = LEAST; bytes <= p->options->most && sizes < SIZES; bytes *= 4)
        sizes++;
    if (p->options->quick)
        sizes = sizes > 1 ? 1 : sizes;
    struct table *t = report_table(p->report, 8, heads, width);
    snprintf(t->title, sizeof t->title, "The first %d operations, %d ranks", FIRST, p->ranks);
    snprintf(t->note, sizeof t->note,
             "Of a new job each time, behind %d barriers: from a common start to the last rank's "
             "end of the last one, and the "
             "longest single one, beside the shorter one of both MPIs. Medians; / faster MPI: of "
             "the ratios of rounds, with the middle half of them.",
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
        }
        series_free(&row->best);
    }
    for (int i = 0; i < COUNT; i++)
        if (why[i][0])
            report_remark(p->report, i == TUTTI, "first operations of %s not measured: %s",
                          contenders[i].name, why[i]);
}
