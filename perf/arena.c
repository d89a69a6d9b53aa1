/* Measures the time saved if buffers lie in memory that the other ranks can reach: the same
 * all_reduce from private memory, from tutti_alloc, and from malloc memory made part of the arena
 * by tutti_register. */
#include "harness/measure.h"
#include "harness/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct perf_program program = {
    .name = "arena",
    .question =
        "What does an all_reduce gain when its buffers lie in the arena, by tutti_alloc or "
        "tutti_register?",
    .ranks = "2",
    .seconds = 20,
    .sizes = true,
    .examples =
        "  arena\n  arena --hot\n  arena --most 64M --seconds 40\n  arena --ranks 2,4 --html "
        "arena.html\n",
};

enum { SETS = 3 };
enum { PRIVATE, ARENA, REGISTERED, PRIVATE_IN_PLACE, ARENA_IN_PLACE, COPY, COUNT };

/* The buffers of this rank's process, made at first use: SETS to send and SETS to receive, used in
   turn, so that not all of them are in the caches. --hot: one of each, as in a program that reduces
   the same gradients in every step. */
struct pool { char *at; size_t bytes; };
static struct pool pools[3];

static int pool_make(struct pool *pool, int kind, struct rank *r)
{
    size_t bytes = 2 * SETS * r->bytes;
    if (pool->bytes >= bytes)
        return 0;
    pool->at = kind == ARENA ? tutti_alloc(bytes, r->comm) : malloc(bytes);
    if (!pool->at)
        return -1;
    memset(pool->at, 1, bytes);
    pool->bytes = bytes;
    return kind == REGISTERED ? tutti_register(pool->at, bytes, r->comm) : 0;
}

static void pool_give(struct pool *pool, int kind, struct rank *r)
{
    if (kind == ARENA)
        tutti_free(pool->at, r->comm);
    else {
        if (kind == REGISTERED)
            tutti_unregister(pool->at, r->comm);
        free(pool->at);
    }
    *pool = (struct pool){ NULL, 0 };
}

/* The owner writes its contribution before each operation, as a program would. */
static void rewrite(struct rank *r, int kind)
{
    struct pool *pool = &pools[kind];
    if (pool->bytes && pool->bytes < 2 * SETS * r->bytes)
        pool_give(pool, kind, r);
    if (pool_make(pool, kind, r) < 0) {
        fprintf(stderr, "\nperf: no memory: %s\n", tutti_explain(r->comm));
        exit(2);
    }
    r->turn++;
    r->send = pool->at + (r->hot ? 0 : r->turn % SETS) * r->bytes;
    r->recv = r->send + SETS * r->bytes;
    float *x = (float *)(void *)r->send, value = (float)(r->turn & 1023);
    for (size_t i = 0; i < r->bytes / sizeof *x; i++)
        x[i] = value;
}

static int run(struct rank *r, uint64_t times, int kind, bool in_place)
{
    int error = 0;
    for (uint64_t i = 0; i < times && error == 0; i++) {
        if (i)
            rewrite(r, kind);
        error = tutti_all_reduce(r->send, in_place ? r->send : r->recv, r->bytes / sizeof(float),
                                 TUTTI_F32, TUTTI_SUM, r->comm, NULL);
    }
    return error;
}

static void rewrite_private(struct rank *r) { rewrite(r, PRIVATE); }
static void rewrite_arena(struct rank *r) { rewrite(r, ARENA); }
static void rewrite_registered(struct rank *r) { rewrite(r, REGISTERED); }
static int run_private(struct rank *r, uint64_t times) { return run(r, times, PRIVATE, false); }
static int run_arena(struct rank *r, uint64_t times) { return run(r, times, ARENA, false); }

static int run_registered(struct rank *r, uint64_t times)
{
    return run(r, times, REGISTERED, false);
}

static int run_private_in_place(struct rank *r, uint64_t times)
{
    return run(r, times, PRIVATE, true);
}

static int run_arena_in_place(struct rank *r, uint64_t times) { return run(r, times, ARENA, true); }

static int run_copy(struct rank *r, uint64_t times)
{
    for (uint64_t i = 0; i < times; i++) {
        if (i)
            rewrite(r, PRIVATE);
        memcpy(r->recv, r->send, r->bytes);
    }
    return 0;
}

static const struct contender contenders[] = {
    [PRIVATE] = {
        "private", "malloc memory, from one buffer to another", NULL, 0, false, 0, 0, run_private,
        rewrite_private, OP_NONE
    },
    [ARENA] = {
        "arena", "memory of tutti_alloc, from one buffer to another", NULL, 0, false, 0, 0,
        run_arena, rewrite_arena, OP_NONE
    },
    [REGISTERED] = {
        "registered", "malloc memory, registered; its ends share pages with others", NULL, 0, false,
        0, 0, run_registered, rewrite_registered, OP_NONE
    },
    [PRIVATE_IN_PLACE] = {
        "private in place", "malloc memory, in place", NULL, 0, false, 0, 0, run_private_in_place,
        rewrite_private, OP_NONE
    },
    [ARENA_IN_PLACE] = {
        "arena in place", "memory of tutti_alloc, in place", NULL, 0, false, 0, 0,
        run_arena_in_place, rewrite_arena, OP_NONE
    },
    [COPY] = {
        "memcpy", "each rank copies as many bytes, at the same time", NULL, 0, false, 0, 0,
        run_copy, rewrite_private, OP_NONE
    },
    [COUNT] = { 0 }
};

static void tell(struct report *report, struct table *table, struct plot *plot,
                 const struct team *team, size_t bytes, const struct measured *m)
{
    static const int against[COUNT] = {
        [ARENA] = PRIVATE, [REGISTERED] = ARENA,
        [ARENA_IN_PLACE] = PRIVATE_IN_PLACE, [COPY] = PRIVATE
    };
    char text[COUNT + 3][32];
    const char *cells[COUNT + 3];
    double ratio[COUNT];
    cells[0] = unit_text(text[0], sizeof text[0], UNIT_BYTES, (double)bytes);
    for (int i = 0; i < COUNT; i++) {
        struct figure *f = report_figure(report, "all_reduce", contenders[i].name, UNIT_NS,
                                         team->ranks);
        figure_single(f, &m[i].single);
        f->bytes = bytes;
        f->value = series_median(&m[i].rounds);
        f->ratio = series_ratio(&m[against[i]].rounds, &m[i].rounds);
        ratio[i] = f->ratio.median;
        snprintf(f->against, sizeof f->against, "%s", contenders[against[i]].name);
        curve_point(&plot->curves[i], (double)bytes, f->value);
    }
    for (int i = ARENA; i <= REGISTERED; i++)
        cells[i + 1] = unit_text(text[i + 1], sizeof text[0], UNIT_NS, series_median(&m[i].rounds));
    cells[1] = unit_text(text[1], sizeof text[0], UNIT_NS, series_median(&m[PRIVATE].rounds));
    cells[4] = unit_text(text[4], sizeof text[0], UNIT_RATIO, ratio[ARENA]);
    cells[5] = unit_text(text[5], sizeof text[0], UNIT_RATIO, ratio[REGISTERED]);
    cells[6] = unit_text(text[6], sizeof text[0], UNIT_RATIO, ratio[ARENA_IN_PLACE]);
    cells[7] = unit_text(text[7], sizeof text[0], UNIT_NS, series_median(&m[COPY].rounds));
    table_row(table, bytes == (size_t)16 << 20, cells);
    if (bytes == (size_t)16 << 20 && team->ranks == 2) {
        report_promise(report, "16 MiB in place: arena / private", 1 / ratio[ARENA_IN_PLACE], 0.5,
                       UNIT_RATIO);
        report_promise(report, "16 MiB: arena / private", 1 / ratio[ARENA], 0.5, UNIT_RATIO);
        report_promise(report, "16 MiB: registered malloc memory / arena", 1 / ratio[REGISTERED],
                       1.1, UNIT_RATIO);
    }
}

static void compare(struct report *report, const struct perf_options *o, int k)
{
    static const char *const heads[] = {
        "bytes", "private", "arena", "registered", "private/arena",
        "arena/reg.", "in place", "memcpy"
    };
    static const int width[] = { 7, 9, 9, 11, 14, 11, 9, 8 };
    struct team team;
    size_t least = o->quick ? 1 << 18 : 1 << 20;
    int sizes = 0, done = 0;
    for (size_t bytes = least; bytes <= o->most; bytes *= 4)
        sizes++;
    team_open(&team,
              &(struct team_plan){
                  .ranks = o->ranks[k], .contenders = contenders, .shared_bytes = 4096 });
    struct table *table = report_table(report, 8, heads, width);
    snprintf(table->title, sizeof table->title, "%d ranks, %s, f32, sum, buffers %s", team.ranks,
             team.crowded ? "more than CPUs" : "a CPU each", o->hot ? "hot" : "used in turn");
    snprintf(table->note, sizeof table->note,
             "Time until the last rank is through, started together, buffers rewritten by their "
             "owners before. Ratios "
             "are medians of the ratios of rounds; private/arena: above 1, the arena is faster; in "
             "place: the same with send == recv. "
             "memcpy: each rank copies as many bytes at the same time.");
    struct plot *plot = report_plot(report);
    snprintf(plot->title, sizeof plot->title, "All_reduce of %d ranks, where the buffers lie",
             team.ranks);
    snprintf(plot->note, sizeof plot->note, "Lower is better.");
    snprintf(plot->x_title, sizeof plot->x_title, "bytes of each rank");
    snprintf(plot->y_title, sizeof plot->y_title, "time");
    plot->x_scale = plot->y_scale = SCALE_LOG;
    plot->x_unit = UNIT_BYTES;
    plot->y_unit = UNIT_NS;
    for (int i = 0; i < COUNT; i++)
        plot_curve(plot, contenders[i].name, i)->marks = true;
    for (size_t bytes = least; bytes <= o->most; bytes *= 4, done++) {
        struct measured m[CONTENDERS_MAX] = { 0 };
        struct effort e = {
            o->seconds / sizes, o->quick, o->hot, bytes, (k + (double)done / sizes) / o->lists,
            1.0 / sizes / o->lists, OP_NONE, false, 1
        };
        measure(&team, &e, m);
        tell(report, table, &report->plots[report->plot_count - 1], &team, bytes, m);
        measured_free(m, COUNT);
    }
    team_close(&team);
}

int main(int argc, char **argv)
{
    struct perf_options options;
    struct report report;
    report_open(&report, &program, &options, argc, argv);
    for (int k = 0; k < options.lists; k++)
        compare(&report, &options, k);
    return report_end(&report, &options);
}
