/* Our own ranks compare two algorithms at a time: short turns, A B B A, round after round, on the
 * same CPUs within the same milliseconds. So another load affects both. Each rank chooses the
 * algorithm by rules that it puts into its world between two operations, all ranks at the same
 * place of this program. Each algorithm has its own comm, because a comm remembers its choice. All
 * is measured in two passes, so that one minute with another load does not decide alone.
 * The cost of an operation is rank 0's time for many, from one barrier after them to the next. */
#include "cli/doctor_tune.h"

#include "base/clock.h"
#include "coll/select.h"
#include "group/comm.h"
#include "os/cpu.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROUNDS = TUNE_ROUNDS / TUNE_PASSES };  /* in a pass */
enum { TRIAL = 3, TIMES_MOST = 20000, BAR = 30, RESULT_MOST = 8 << 20, WIDTH = sizeof(float) };
enum { LIFE_BESIDES_MS = 60000 };             /* more than a team's time; after it the team hangs */

static const char *const names[] = { "inline", "eager", "pipelined" };
enum { NAMES = sizeof names / sizeof names[0] };

struct team_task { struct tune_team *team; struct tune_effort effort; };

/* What a rank uses for measuring. */
struct bench {
    tutti_comm *world, *comm[NAMES];
    struct rules *rules[NAMES], *own;
    int me, size;
    char *send, *recv;
    size_t room;
    unsigned turn;
};

/* ---- one operation --------------------------------------------------------------------------- */

static bool has_blocks(enum kind kind)
{
    return kind == KIND_REDUCE_SCATTER || kind == KIND_SCATTER || kind == KIND_ALL_TO_ALL;
}

static bool gathers(enum kind kind) { return kind == KIND_ALL_GATHER || kind == KIND_GATHER; }

static int operate(const struct bench *b, enum kind kind, size_t n, tutti_comm *comm)
{
    switch (kind) {
    case KIND_BROADCAST:      return tutti_broadcast(b->send, n, TUTTI_F32, 0, comm, NULL);
    case KIND_REDUCE: return tutti_reduce(b->send, b->recv, n, TUTTI_F32, TUTTI_SUM, 0, comm, NULL);
    case KIND_ALL_REDUCE:
        return tutti_all_reduce(b->send, b->recv, n, TUTTI_F32, TUTTI_SUM, comm, NULL);
    case KIND_REDUCE_SCATTER:
        return tutti_reduce_scatter(b->send, b->recv, n, TUTTI_F32, TUTTI_SUM, comm, NULL);
    case KIND_ALL_GATHER:     return tutti_all_gather(b->send, b->recv, n, TUTTI_F32, comm, NULL);
    case KIND_GATHER:         return tutti_gather(b->send, b->recv, n, TUTTI_F32, 0, comm, NULL);
    case KIND_SCATTER:        return tutti_scatter(b->send, b->recv, n, TUTTI_F32, 0, comm, NULL);
    case KIND_ALL_TO_ALL:     return tutti_all_to_all(b->send, b->recv, n, TUTTI_F32, comm, NULL);
    case KIND_SCAN: return tutti_scan(b->send, b->recv, n, TUTTI_F32, TUTTI_SUM, comm, NULL);
    case KIND_EXSCAN: return tutti_exscan(b->send, b->recv, n, TUTTI_F32, TUTTI_SUM, comm, NULL);
    default:                  return -EINVAL;
    }
}

/* Runs an operation `times` times. Each rank writes its contribution before each, as a program
 * would. */
static int turn(struct bench *b, enum kind kind, size_t bytes, int which, int64_t times, double *ns)
{
    size_t n = bytes / WIDTH / (has_blocks(kind) ? (size_t)b->size : 1);
    tutti_comm *comm = b->comm[which];
    b->world->world->rules = b->rules[which];
    int r = operate(b, kind, n, comm);
    if (r >= 0)
        r = tutti_barrier(comm, NULL);
    uint64_t began = clock_ns();
    for (int64_t i = 0; i < times && r >= 0; i++) {
        memset(b->send, b->turn++ & 1 ? 0x3f : 0x40, bytes);
        r = operate(b, kind, n, comm);
    }
    if (r >= 0)
        r = tutti_barrier(comm, NULL);
    *ns = (double)(clock_ns() - began) / (double)times;
    b->world->world->rules = b->own;
    return r < 0 ? r : 0;
}

/* ---- a comparison ---------------------------------------------------------------------------- */

static bool takes(const struct bench *b, enum kind kind, size_t bytes)
{
    size_t parts = has_blocks(kind) || gathers(kind) ? (size_t)b->size : 1;
    return has_blocks(kind) ? bytes / WIDTH >= parts
                            : bytes * (gathers(kind) ? parts : 1) <= b->room;
}

/* Rank 0 tells all ranks the number of operations in a turn. 0: the time is over. */
static int agree_times(struct bench *b, double slice_ns, double ns, uint64_t ends_ns,
                       int64_t *times)
{
    if (b->me == 0) {
        double fit = slice_ns / (ns > 1 ? ns : 1);
        *times = clock_ns() >= ends_ns ? 0
            : fit < 1 ? 1
            : fit > TIMES_MOST ? TIMES_MOST
            : (int64_t)fit;
    }
    return tutti_broadcast(times, 1, TUTTI_I64, 0, b->world, NULL);
}

static int compare(struct bench *b, enum kind kind, int pair, size_t bytes, double slice_ns,
                   uint64_t ends_ns, struct tune_cell *cell)
{
    double ns[2] = { 0, 0 };
    int64_t times = 0;
    int r = agree_times(b, 1, 1, ends_ns, &times);
    if (r < 0 || times == 0)
        return r;
    for (int i = 0; i < 2 && r == 0; i++)
        r = turn(b, kind, bytes, pair + i, TRIAL, &ns[i]);
    if (r == 0)
        r = agree_times(b, slice_ns, ns[0] > ns[1] ? ns[0] : ns[1], UINT64_MAX, &times);
    for (int round = 0; round < ROUNDS && r == 0; round++) {
        for (int i = 0; i < 2 && r == 0; i++)
            r = turn(b, kind, bytes, pair + (i ^ (round & 1)), times, &ns[i ^ (round & 1)]);
        if (r == 0 && b->me == 0 && ns[0] > 0)
            cell->ratio[cell->rounds++] = ns[1] / ns[0];
    }
    return r;
}

static void show(const struct bench *b, const struct team_task *task, int done, int all,
                 enum kind kind)
{
    char bar[BAR + 1];
    if (b->me != 0 || !isatty(STDERR_FILENO))
        return;
    double share = task->effort.done + task->effort.share * done / all;
    int full = (int)(share * BAR);
    memset(bar, '.', BAR);
    memset(bar, '#', (size_t)(full < BAR ? full : BAR));
    bar[BAR] = 0;
    fprintf(stderr, "\r[%s] %3.0f %%  %4d ranks, %-16s", bar, share * 100, b->size,
            kind_name(kind));
}

/* A comm's first operations touch its memory, and use less of it (group/stage.c). That is not an
 * algorithm's speed. */
static int warm_up(struct bench *b, int pair)
{
    enum { WARM_NS = 30000000 };
    int64_t times = 0;
    int r = 0, last = TUNE_SIZES - 1;
    while (last > 0 && !tune_pairs[pair].sizes[last])
        last--;
    for (int i = 0; i < 2 && r == 0; i++) {
        double ns = 0;
        r = turn(b, KIND_ALL_REDUCE, tune_pairs[pair].sizes[last], pair + i, TRIAL, &ns);
        r = r < 0 ? r : agree_times(b, WARM_NS, ns, UINT64_MAX, &times);
        r = r < 0 ? r
                  : turn(b, KIND_ALL_REDUCE, tune_pairs[pair].sizes[last], pair + i, times, &ns);
    }
    return r;
}

/* The outer loop is over sizes, from large to small. If the time is too short, every kind has been
 * measured at some sizes, and first at large ones, where the gain is largest. */
static int compare_pair(struct bench *b, const struct team_task *task, int pair, int *done)
{
    int all = TUNE_PASSES * TUNE_KINDS * (TUNE_SIZES + 2), r = warm_up(b, pair);
    if (r < 0)
        return r;
    for (int size = TUNE_SIZES - 1; size >= 0; size--)
        for (int k = 0; k < TUNE_KINDS && tune_pairs[pair].sizes[size]; k++, (*done)++) {
            size_t bytes = tune_pairs[pair].sizes[size];
            uint64_t now = clock_ns(),
                     left = now < task->effort.ends_ns ? task->effort.ends_ns - now : 0;
            show(b, task, *done, all, tune_kinds[k]);
            if (!takes(b, tune_kinds[k], bytes))
                continue;
            r = compare(b, tune_kinds[k], pair, bytes,
                        (double)left / (all - *done) / (2 * ROUNDS + 1), task->effort.ends_ns,
                        &task->team->cell[k][pair][size]);
            if (r < 0)
                return r;
        }
    return 0;
}

static int compare_all(struct bench *b, const struct team_task *task)
{
    int done = 0, r = 0;
    for (int pass = 0; pass < TUNE_PASSES; pass++)
        for (int pair = TUNE_PAIRS - 1; pair >= 0 && r == 0; pair--)
            r = compare_pair(b, task, pair, &done);
    return r;
}

/* ---- ranks ----------------------------------------------------------------------------------- */

static int open_bench(struct bench *b, tutti_comm *world)
{
    char said[200], text[1000];
    struct text why = TEXT_IN(said);
    *b = (struct bench){
        .world = world, .own = world->world->rules, .me = tutti_rank(world),
        .size = tutti_size(world), .room = RESULT_MOST
    };
    b->send = calloc(1, RESULT_MOST);
    b->recv = calloc(1, RESULT_MOST);
    if (!b->send || !b->recv)
        return -ENOMEM;
    text_clear(&why);
    for (int i = 0; i < NAMES; i++) {
        struct text t = TEXT_IN(text);
        text_clear(&t);
        for (int k = 0; k < TUNE_KINDS; k++)
            text_add(&t, "%s%s:-inf=%s", k ? ";" : "", kind_name(tune_kinds[k]), names[i]);
        b->rules[i] = malloc(sizeof *b->rules[i]);
        int r = b->rules[i] ? select_parse(b->rules[i], text, &why) : -ENOMEM;
        if (r == 0)
            r = tutti_comm_split(world, 0, b->me, &b->comm[i]);
        if (r < 0)
            return r;
    }
    return 0;
}

static void close_bench(struct bench *b)
{
    for (int i = 0; i < NAMES; i++) {
        if (b->comm[i])
            tutti_comm_free(b->comm[i]);
        free(b->rules[i]);
    }
    free(b->send);
    free(b->recv);
}

static int rank_body(tutti_comm *world, void *arg)
{
    const struct team_task *task = arg;
    struct bench b;
    if (!task->team->crowded)
        cpu_bind(tutti_rank(world));                 /* if not allowed, ranks move between CPUs */
    int r = open_bench(&b, world);
    if (r == 0)
        r = compare_all(&b, task);
    if (r < 0 && b.me == 0)
        fprintf(stderr, "tutti doctor: %s\n", tutti_strerror(r));
    close_bench(&b);
    return r < 0;
}

int tune_measure(struct tune_team *team, const struct tune_effort *effort, struct text *why)
{
    struct team_task task = { team, *effort };
    uint64_t now = clock_ns(), left = effort->ends_ns > now ? effort->ends_ns - now : 0;
    const tutti_options options = { .timeout_ms = (int)(left / 1000000) + LIFE_BESIDES_MS };
    int failed = tutti_spawn(team->ranks, rank_body, &task, &options, NULL);
    if (failed < 0)
        text_add(why, "%s", tutti_explain(NULL));
    else if (failed > 0)
        text_add(why, "%d of %d ranks failed", failed, team->ranks);
    return failed > 0 ? -EIO : failed;
}
