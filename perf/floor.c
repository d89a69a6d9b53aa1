/* Measures what the machine itself costs, for any program: every other result in perf/ is a
 * multiple of one of these. */
#include "harness/measure.h"
#include "harness/report.h"
#include "harness/context_switch.h"
#include "os/futex.h"
#include "reports/cache_transfer.h"

#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct perf_program program = {
    .name = "floor",
    .question =
        "What does the machine itself cost: a cache line to another CPU and back, a system call, a "
        "wake, a copy, "
                "and one out of another CPU's cache?",
    .ranks = "2",
    .seconds = 4,
    .examples = "  floor\n  floor --seconds 20 --json floor.json\n",
};

static int run_line(struct rank *r, uint64_t times)
{
    while (times--)
        bare_there_and_back(r->bare, r->me, ++r->nth[0]);
    return 0;
}

static int run_exchange(struct rank *r, uint64_t times)
{
    while (times--)
        bare_exchange(r->bare, r->me, ++r->nth[0]);
    return 0;
}

/* There and back; the waiting rank sleeps at once. */
static int run_futex(struct rank *r, uint64_t times)
{
    shared64 *mine = &r->bare->mail[r->me][0].word, *theirs = &r->bare->mail[!r->me][0].word;
    while (times--) {
        uint64_t nth = ++r->nth[1];
        if (r->me == 1)
            for (uint64_t seen; (seen = load_acquire64(theirs)) < nth;)
                futex_wait(low_half(theirs), (uint32_t)seen, 1000000000);
        store_release64(mine, nth);
        futex_wake(low_half(mine), 1);
        if (r->me == 0)
            for (uint64_t seen; (seen = load_acquire64(theirs)) < nth;)
                futex_wait(low_half(theirs), (uint32_t)seen, 1000000000);
    }
    return 0;
}

static int run_stamp(struct rank *r, uint64_t times)
{
    while (times--)
        r->turn += stamp_now();
    return 0;
}

static int run_clock(struct rank *r, uint64_t times)
{
    while (times--)
        r->turn += clock_ns();
    return 0;
}

static int run_call(struct rank *r, uint64_t times)
{
    while (times--)
        r->turn += (uint64_t)syscall(SYS_getpid);
    return 0;
}

static int run_yield(struct rank *r, uint64_t times)
{
    (void)r;
    while (times--)
        sched_yield();
    return 0;
}

static int run_fence(struct rank *r, uint64_t times)
{
    while (times--)
        store_fence64(&r->bare->mail[r->me][1].word, times);
    return 0;
}

static void buffers(struct rank *r)
{
    size_t sets = r->room / r->bytes;
    r->turn++;
    r->send = r->sends + r->turn % sets * r->bytes;
    r->recv = r->recvs + r->turn % sets * r->bytes;
}

static int run_copy(struct rank *r, uint64_t times)
{
    while (times--)
        memcpy(r->recv, r->send, r->bytes);
    return 0;
}

static int run_copy_alone(struct rank *r, uint64_t times)
{
    return r->me == 0 ? run_copy(r, times) : 0;
}

enum {
    LINE_TRIP,
    EXCHANGE,
    FUTEX,
    FENCE,
    STAMP,
    CLOCK,
    CALL,
    YIELD,
    TIMES_COUNT,
    COPY_ALONE = TIMES_COUNT,
    COPY,
    COUNT
};
enum { LARGE = 32 << 20, POOL = 128 << 20 };

static const struct contender contenders[] = {
    [LINE_TRIP] = { "cache line there and back", "", NULL, 2, true, 0, 1, run_line, NULL, OP_NONE },
    [EXCHANGE] = { "two-flag exchange", "", NULL, 2, true, 0, 1, run_exchange, NULL, OP_NONE },
    [FUTEX] = { "futex there and back", "", NULL, 2, true, 0, 1, run_futex, NULL, OP_NONE },
    [FENCE] = { "store with full fence", "", NULL, 0, true, 0, 1, run_fence, NULL, OP_NONE },
    [STAMP] = { "time stamp", "", NULL, 0, true, 0, 1, run_stamp, NULL, OP_NONE },
    [CLOCK] = { "clock_gettime", "", NULL, 0, true, 0, 1, run_clock, NULL, OP_NONE },
    [CALL] = { "system call", "", NULL, 0, true, 0, 1, run_call, NULL, OP_NONE },
    [YIELD] = { "sched_yield alone", "", NULL, 0, true, 0, 1, run_yield, NULL, OP_NONE },
    [COPY_ALONE] = { "memcpy one CPU", "", NULL, 0, true, 2, 0, run_copy_alone, buffers, OP_NONE },
    [COPY] = { "memcpy each rank", "", NULL, 0, true, 2, 0, run_copy, buffers, OP_NONE },
    [COUNT] = { 0 }
};

static void times_table(struct report *report, int ranks, const struct measured *m,
                        const struct series *passed)
{
    static const char *const heads[] = { "", "batch", "p10", "p90", "/ exchange" };
    static const int width[] = { -30, 10, 10, 10, 12 };
    struct table *t = report_table(report, 5, heads, width);
    snprintf(t->title, sizeof t->title, "Times");
    snprintf(t->note, sizeof t->note,
             "Of one, many back to back; p10 and p90 of the rounds. Context switch: two processes "
             "on one CPU that "
             "yield to each other, a switch each time.");
    for (int i = 0; i <= TIMES_COUNT; i++) {
        bool last = i == TIMES_COUNT;
        const struct series *s = last ? passed : &m[i].rounds;
        const char *name = last ? "context switch by sched_yield" : contenders[i].name;
        char text[4][32];
        if (!s->n)
            continue;
        struct figure *f = report_figure(report, "floor", name, UNIT_NS, last ? 2 : ranks);
        figure_single(f, s);
        f->ratio = last ? (struct ratio){ 0 } : series_ratio(s, &m[EXCHANGE].rounds);
        snprintf(f->against, sizeof f->against, "%s", contenders[EXCHANGE].name);
        double ratio = m[EXCHANGE].rounds.n ? f->value / series_median(&m[EXCHANGE].rounds) : 0;
        const char *cells[] = { name, unit_text(text[0], sizeof text[0], UNIT_NS, f->value),
                                unit_text(text[1], sizeof text[1], UNIT_NS,
                                          series_quantile(s, 0.1)),
                                unit_text(text[2], sizeof text[2], UNIT_NS,
                                          series_quantile(s, 0.9)),
                                ratio > 0 ? unit_text(text[3], sizeof text[3], UNIT_RATIO,
                                                      ratio) : "-" };
        table_row(t, false, cells);
    }
}

static void copies_table(struct report *report, struct team *team, const struct perf_options *o)
{
    static const size_t sizes[] = { 4096, 32768, 262144, 1 << 20, LARGE };
    static const char *const heads[] = { "memcpy of", "one CPU", "each rank", "together" };
    static const int width[] = { -14, 14, 14, 14 };
    enum { SIZES = sizeof sizes / sizeof *sizes };
    struct table *t = report_table(report, 4, heads, width);
    snprintf(t->title, sizeof t->title, "Copies");
    snprintf(t->note, sizeof t->note,
             "Bytes copied a second; source and target are taken in turn out of 128 MiB each.");
    for (int k = 0; k < SIZES; k++) {
        struct measured m[CONTENDERS_MAX] = { 0 };
        struct effort e = {
            o->seconds * 0.4 / SIZES, o->quick, false, sizes[k], 0.4 + 0.4 * k / SIZES,
            0.4 / SIZES, OP_NONE, false, 1
        };
        measure(team, &e, m);
        char text[4][32];
        double rate[2] = { 0, 0 };
        for (int i = 0; i < 2 && m[COPY_ALONE + i].in; i++) {
            struct figure *f = report_figure(report, "copy", contenders[COPY_ALONE + i].name,
                                             UNIT_NS, team->ranks);
            figure_single(f, &m[COPY_ALONE + i].single);
            f->bytes = sizes[k];
            rate[i] = (double)sizes[k] / f->value * 1e9;
        }
        const char *cells[] = { unit_text(text[0], sizeof text[0], UNIT_BYTES, (double)sizes[k]),
                                unit_text(text[1], sizeof text[1], UNIT_RATE, rate[0]),
                                unit_text(text[2], sizeof text[2], UNIT_RATE, rate[1]),
                                unit_text(text[3], sizeof text[3], UNIT_RATE,
                                          rate[1] * team->ranks) };
        table_row(t, false, cells);
        measured_free(m, COUNT);
    }
}

int main(int argc, char **argv)
{
    struct perf_options options;
    struct report report;
    struct team team;
    struct measured m[CONTENDERS_MAX] = { 0 };
    struct series passed = { 0 };
    report_open(&report, &program, &options, argc, argv);
    context_switch_measure(&passed, options.quick ? 4 : 40);
    team_open(&team,
              &(struct team_plan){ .ranks = options.ranks[0],
                                   .contenders = contenders,
                                   .shared_bytes = 4096,
                                   .pool_bytes = options.quick ? LARGE : POOL });
    if (!team.crowded) {
        struct effort e = {
            options.seconds * 0.4, options.quick, true, 0, 0, 0.4, OP_NONE, false, 1
        };
        measure(&team, &e, m);
    }
    times_table(&report, team.ranks, m, &passed);
    if (!team.crowded)
        copies_table(&report, &team, &options);
    team_close(&team);
    if (!team.crowded && team.ranks > 1)
        ask_cache_transfer(
            &(struct question){ &report, &options, 2, options.seconds * 0.2, 0.8, 0.2 });
    return report_end(&report, &options);
}
