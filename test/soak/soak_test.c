/* ctest: timeout=600 labels=soak,tsan
 * Random programs over random groups, with more ranks than CPUs, for TUTTI_SOAK_SECONDS (15). Each
 * world has a seed of its own, which TUTTI_TEST_SEED sets for the first; what fails says which it
 * was. TUTTI_SOAK_STEPS: how long a program is. In some worlds, and in all under ThreadSanitizer,
 * the ranks are threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "soak.h"

#include "base/clock.h"
#include "coll/select.h"
#include "support/ranks.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { SPAN_BYTES = 128 << 20 };       /* staging of all groups, and all that is under way */

struct plan { uint64_t seed; size_t steps; struct soak_board *board; };

static int body(tutti_comm *world, void *arg)
{
    const struct plan *plan = arg;
    return soak_play(world, plan->seed, plan->steps, plan->board);
}

static uint64_t number(const char *name, uint64_t otherwise)
{
    const char *given = getenv(name);
    return given ? strtoull(given, NULL, 0) : otherwise;
}

static void set(const char *name, const char *value)
{
    assert_int_equal(value ? setenv(name, value, 1) : unsetenv(name), 0);
}

/* All kinds by this algorithm where it can, with this gate; NULL: by default. */
static void set_rules(const char *algorithm, const char *gate)
{
    char rules[1024];
    struct text t = TEXT_IN(rules);
    rules[0] = 0;
    for (const struct algorithm *a = select_all(); algorithm && a->name; a++)
        if (!strcmp(a->name, algorithm) && a->kind != KIND_SAME)
            text_add(&t, "%s:-inf=%s;", kind_name(a->kind), algorithm);
    if (gate)
        text_add(&t, "barrier:-inf=%s", gate);
    set("TUTTI_ALGORITHM", rules[0] ? rules : NULL);
}

struct seat_of { struct plan *plan; const char *job; int rank, size, failed; pthread_t thread; };

static void *thread_body(void *arg)
{
    struct seat_of *seat = arg;
    tutti_options options = {
        .job = seat->job, .rank = seat->rank, .size = seat->size, .span_bytes = SPAN_BYTES
    };
    tutti_comm *world;
    seat->failed = 1;
    if (tutti_init(&world, &options) < 0) {
        print_error("rank %d: %s\n", seat->rank, tutti_explain(NULL));
        return NULL;
    }
    seat->failed = body(world, seat->plan);
    if (tutti_finalize(world) < 0)
        seat->failed = 1;
    return NULL;
}

static int run_threads(int size, struct plan *plan)
{
    struct seat_of seats[SOAK_RANKS];
    const char *job = ranks_job();
    int failed = 0;
    for (int r = 0; r < size; r++) {
        seats[r] = (struct seat_of){ .plan = plan, .job = job, .rank = r, .size = size };
        assert_int_equal(pthread_create(&seats[r].thread, NULL, thread_body, &seats[r]), 0);
    }
    for (int r = 0; r < size; r++) {
        pthread_join(seats[r].thread, NULL);
        failed += seats[r].failed;
    }
    return failed;
}

/* A world with this seed: how many ranks, by which rules, from which number on. */
static void run_world(struct plan *plan)
{
    static const char *const firsts[] = { "0", "1073741700", "4294967200" },
                             *const algorithms[] = { NULL, NULL, "pipelined", "eager", "inline" };
    static const char *const gates[] = { NULL, "flags", "central" };
    uint64_t seed = plan->seed;
    int ranks = soak_below(&seed, 5) ? 8 + (int)soak_below(&seed, 5)
                                     : 1 + (int)soak_below(&seed, 7);
    const char *algorithm = algorithms[soak_below(&seed, 5)], *gate = gates[soak_below(&seed, 3)],
               *first = firsts[soak_below(&seed, 3)];
    const char *sanitized = getenv("TUTTI_TEST_SANITIZED");
    bool verify = soak_below(&seed, 3) == 0,
         threads = soak_below(&seed, 8) == 0 || (sanitized && strstr(sanitized, "thread"));
    tutti_options options = { .timeout_ms = 10 * 60 * 1000, .span_bytes = SPAN_BYTES };
    memset(plan->board, 0, offsetof(struct soak_board, total));
    set_rules(algorithm, gate);
    set("TUTTI_FIRST_SEQ", first);
    set("TUTTI_VERIFY", verify ? "1" : NULL);
    int failed = threads ? run_threads(ranks, plan)
                         : tutti_spawn(ranks, body, plan, &options, NULL);
    for (uint32_t i = 0; i < load_acquire32(&plan->board->used) && i < 4; i++)
        print_error("%s\n", plan->board->said[i]);
    if (failed)
        fail_msg("%d of %d ranks failed (%s, gate %s, first number %s%s%s); TUTTI_TEST_SEED=%llu "
                 "runs it again %s",
                 failed, ranks, algorithm ? algorithm : "default", gate ? gate : "default", first,
                 verify ? ", verify" : "", threads ? ", threads" : "",
                 (unsigned long long)plan->seed, failed < 0 ? tutti_explain(NULL) : "");
    if (load_acquire64(&plan->board->runs) != load_acquire64(&plan->board->runs_due))
        fail_msg("once and first ran %llu times, should %llu; TUTTI_TEST_SEED=%llu",
                 (unsigned long long)load_acquire64(&plan->board->runs),
                 (unsigned long long)load_acquire64(&plan->board->runs_due),
                 (unsigned long long)plan->seed);
}

static const char *const totals[4 + DOINGS] = {
    "collectives of ranks", "by work", "in the arena", "in place", "begun",
    "splits", "creates", "frees", "op_creates", "op_frees", "once", "first", "turns"
};

static void board_add(struct soak_board *board)
{
    board->total[0] += load_acquire64(&board->operations);
    board->total[1] += load_acquire64(&board->by_work);
    board->total[2] += load_acquire64(&board->in_arena);
    board->total[3] += load_acquire64(&board->in_place);
    for (int d = 0; d < DOINGS; d++)
        board->total[4 + d] += load_acquire64(&board->by_doing[d]);
}

static void board_say(const struct soak_board *board)
{
    for (int i = 0; i < 4 + DOINGS; i++)
        printf("%llu %s%s", (unsigned long long)board->total[i], totals[i],
               i + 1 < 4 + DOINGS ? ", " : "\n");
}

static void programs_come_true(void **state)
{
    (void)state;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t seed = number("TUTTI_TEST_SEED",
                           (uint64_t)now.tv_sec * 1000000007u ^ (uint64_t)now.tv_nsec);
    uint64_t seconds = number("TUTTI_SOAK_SECONDS", getenv("TUTTI_PROVE") ? 1800 : 15);
    struct soak_board *board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE,
                                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(board, MAP_FAILED);
    struct plan plan = { seed, (size_t)number("TUTTI_SOAK_STEPS", 400), board };
    uint64_t began = clock_ns(), worlds = 0, said = 0;
    do {
        printf("world %llu: TUTTI_TEST_SEED=%llu\n", (unsigned long long)worlds,
               (unsigned long long)plan.seed);
        fflush(stdout);
        run_world(&plan);
        worlds++;
        board_add(board);
        plan.seed = soak_any(&plan.seed);
        if (clock_ns() - began > said * UINT64_C(10000000000)) {
            printf("%llu s: ", (unsigned long long)((clock_ns() - began) / 1000000000));
            board_say(board);
            said++;
        }
    } while (clock_ns() - began < seconds * 1000000000);
    printf("%llu worlds: ", (unsigned long long)worlds);
    board_say(board);
    munmap(board, sizeof *board);
}

int main(void)
{
    set("TUTTI_TIMEOUT_MS", "120000");
    set("TUTTI_WARN_MS", "-1");
    const struct CMUnitTest tests[] = { cmocka_unit_test(programs_come_true) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
