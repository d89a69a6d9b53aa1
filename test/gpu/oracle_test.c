/* ctest: timeout=300
 * The oracle of support/oracle.h on device memory: every collective x type x operation x place x
 * size around every threshold x alignment, 1 ... 8 ranks on 1 ... 4 devices, each buffer on a
 * device or on the host, of every source of memory, by every road and algorithm, behind work in a
 * stream of the caller's, blocking and by work, with copies and kernels that take their time. All
 * ranks' results have the bits of a serial fold, so those of all roads are the same, and those of
 * host memory (coll.oracle). Ranks are processes, in a few worlds threads. By default a sample that
 * is another one each time, and the corners; in ./bootstrap prove the product of kind x ranks x
 * rule x road x type x op x place, and all pairs of values.
 *
 * TUTTI_TEST_SEED=n runs the same again; TUTTI_ORACLE_WORLD=k of it only the k-th world, or k-n
 * those from the k-th to the n-th; TUTTI_ORACLE_CASES=n: a sample of n. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/tiny.h"
#include "child_case.h"
#include "oracle_device.h"
#include "support/ranks.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { SAMPLE = TINY(800, 200), WORLDS = TINY(20, 10), THREAD_CASES = TINY(60, 30) };

struct shared { struct oracle_board board; shared64 pulled; };
struct seat {
    pthread_t thread;
    int rank, size, result;
    const char *job;
    const struct group *group;
};
struct group { const struct oracle_case *cases; size_t n; struct shared *shared; };

static const struct oracle_space common = { 1, ORACLE_RANKS, TINY(200000, 30000), true },
                                 everything = { 1, ORACLE_RANKS, TINY(600000, 60000), true };
static const struct oracle_space large = { 1, ORACLE_RANKS, SIZE_MAX, true };

static int run(tutti_comm *world, tutti_comm *comm, const struct group *group, size_t first,
               size_t n)
{
    return oracle_run(comm, group->cases + first, n, &group->shared->board,
                      oracle_device_of(world, comm));
}

static const struct group *threaded;   /* whose ranks are threads of one process; NULL: processes */

/* 0, or 1 what was wrong is on the board, 2 on stderr. */
static int live(tutti_comm *world, const struct group *group)
{
    size_t third = group->n / 3;
    tutti_comm *other;
    if (run(world, world, group, 0, third))
        return 1;
    /* Then on a comm of the same ranks, and on the world again when that has gone. */
    if (tutti_comm_split(world, 0, tutti_rank(world), &other) < 0
        || run(world, other, group, third, third))
        return 1;
    if (tutti_comm_free(other) < 0 || run(world, world, group, 2 * third, group->n - 2 * third))
        return 1;
    if (tutti_rank(world) == 0)
        fetch_add64(&group->shared->pulled, oracle_device_pulled());
    return oracle_device_end(world) ? 0 : 2;
}

static int body(tutti_comm *world, void *arg)
{
    signal(SIGSEGV, SIG_DFL);                   /* cmocka's would go on as the test in this child */
    int r = live(world, arg);
    if (r)
        return r;
    fflush(NULL);
    exit(0);                                    /* what the driver checks at the end, it checks */
}

static void *live_as_thread(void *arg)
{
    struct seat *s = arg;
    tutti_comm *world;
    tutti_options options = {
        .job = s->job, .rank = s->rank, .size = s->size, .timeout_ms = 20 * 60 * 1000
    };
    s->result = tutti_init(&world, &options);
    if (s->result < 0)
        fprintf(stderr, "rank %d: tutti_init: %s\n", s->rank, tutti_explain(NULL));
    else
        s->result = live(world, s->group);
    return NULL;
}

/* All ranks in one process, which has each device's context once, and opens no memory
 * of its own. */
static int body_of_threads(void)
{
    struct seat seats[ORACLE_RANKS];
    int size = oracle_ranks(threaded->cases), wrong = 0;
    const char *job = ranks_job();
    signal(SIGSEGV, SIG_DFL);
    YES(case_cuda());
    for (int r = 0; r < size; r++) {
        seats[r] = (struct seat){ .rank = r, .size = size, .job = job, .group = threaded };
        OK(pthread_create(&seats[r].thread, NULL, live_as_thread, &seats[r]));
    }
    for (int r = 0; r < size; r++) {
        pthread_join(seats[r].thread, NULL);
        wrong += seats[r].result != 0;
    }
    OK(cu.cuDevicePrimaryCtxRelease_v2(0));
    return wrong;
}

static void set(const char *name, const char *value)
{
    assert_int_equal(setenv(name, value, 1), 0);
}

static void run_group(const struct group *group, size_t world)
{
    static const char *const first[] = { "0", "1073741819", "4294967291" },
                             *const delays[] = { "0", "30", "0", TINY("300", "5") };
    char rules[1024], seed[32];
    const struct oracle_case *c = group->cases;
    tutti_options options = { .timeout_ms = 20 * 60 * 1000 };
    snprintf(seed, sizeof seed, "%u", (unsigned)(c->salt & 0xffff) + 1);
    set("TUTTI_ALGORITHM", oracle_rules(c, rules));
    set("TUTTI_FIRST_SEQ", first[c->salt % 3]);
    set("FAKE_CUDA_DELAY_US", delays[c->salt / 3 % 4]);
    set("FAKE_CUDA_SEED", seed);
    if (threaded)
        threaded = group;
    int failed = threaded
        ? case_passes(body_of_threads, (const char *const[]){ NULL })
        : tutti_spawn(oracle_ranks(c), body, (void *)(uintptr_t)group, &options, NULL);
    for (uint32_t i = 0; i < load_acquire32(&group->shared->board.used) && i < ORACLE_COMPLAINTS;
         i++)
        print_error("%s\n", group->shared->board.said[i]);
    if (failed)
        fail_msg("%d of %d ranks failed; TUTTI_ORACLE_WORLD=%zu TUTTI_ALGORITHM=%s "
                 "FAKE_CUDA_DELAY_US=%s %s",
                 failed, oracle_ranks(c), world, rules, getenv("FAKE_CUDA_DELAY_US"),
                 failed < 0 ? tutti_explain(NULL) : "");
}

static bool wanted(size_t world)
{
    const char *only = getenv("TUTTI_ORACLE_WORLD");
    char *end = NULL;
    size_t first = only ? strtoull(only, &end, 10) : 0,
           last = !only ? SIZE_MAX : *end == '-' ? strtoull(end + 1, NULL, 10) : first;
    return world >= first && world <= last;
}

/* How many operations went without staging. */
static uint64_t run_all(struct oracle_cases *cases)
{
    size_t worlds = 0, ran = 0;
    struct shared *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(shared, MAP_FAILED);
    oracle_sort(cases);
    for (size_t i = 0, n; i < cases->used; i += n) {
        n = oracle_world(&cases->at[i], cases->used - i);
        struct group group = { &cases->at[i], n, shared };
        bool runs = wanted(worlds++);
        if (runs)
            run_group(&group, worlds - 1);
        ran += runs ? n : 0;
        if (oracle_prove() && runs) {                /* long: it shows how far it is */
            printf("world %zu: %zu cases, %zu of %zu\n", worlds - 1, n, i + n, cases->used);
            fflush(stdout);
        }
    }
    uint64_t pulled = load_acquire64(&shared->pulled);
    printf("%zu of %zu cases in %zu worlds; %llu without staging\n", ran, cases->used, worlds,
           (unsigned long long)pulled);
    oracle_free(cases);
    munmap(shared, sizeof *shared);
    return pulled;
}

/* So that it may go without staging: all ranks' buffers on devices, at a multiple of the elements'
   size, in memory that peers can open; of a leader's road on one device. */
static void favour(struct oracle_case *c, uint64_t *seed)
{
    c->v[DIM_WHERE] = WHERE_DEVICE;
    c->v[DIM_SEND_AT] = c->v[DIM_RECV_AT] = 0;
    c->v[DIM_SOURCE] = (unsigned char)(oracle_any(seed) % (SOURCE_SHAREABLE + 1));
    if (c->v[DIM_ROAD] == ROAD_BY_RULE_LEADER || c->v[DIM_ROAD] == ROAD_BY_DEFAULT)
        c->v[DIM_DEVICES] = 0;
    if (oracle_folds(c->kind))
        c->v[DIM_OP] = (unsigned char)(oracle_any(seed) % (TUTTI_AVG + 1));
}

static struct oracle_case open_case(enum kind kind)
{
    struct oracle_case c = { .kind = kind };
    memset(c.v, ORACLE_OPEN, sizeof c.v);
    return c;
}

/* Of some worlds by chance, as many cases each. */
static void sample(struct oracle_cases *cases, size_t n, uint64_t *seed)
{
    unsigned char ranks = 0, rule = 0, road = 0;
    size_t each = n / WORLDS > 60 ? 60 : n / WORLDS + 1;
    for (size_t i = 0; i < n;) {
        if (i % each == 0) {
            ranks = (unsigned char)(oracle_any(seed) % ORACLE_RANKS);
            rule = (unsigned char)(oracle_any(seed) % 8);
            rule = rule > RULE_RING ? rule % 2 ? RULE_RING : RULE_DEFAULT : rule;
            road = (unsigned char)(rule < RULE_RING ? 0 : oracle_any(seed) % ORACLE_ROADS);
        }
        struct oracle_case c = open_case(
            KIND_BROADCAST + (enum kind)(oracle_any(seed) % (KIND_ALL_TO_ALL_V - KIND_BARRIER)));
        c.v[DIM_RANKS] = ranks;
        c.v[DIM_RULE] = rule;
        c.v[DIM_ROAD] = road;
        if (road && oracle_any(seed) % 3)
            favour(&c, seed);
        i += oracle_chance(cases, &c, &common, seed);
    }
}

static void samples_agree(void **state)
{
    (void)state;
    const char *many = getenv("TUTTI_ORACLE_CASES");
    uint64_t seed = oracle_seed();
    struct oracle_cases cases = { 0 };
    sample(&cases, many ? strtoull(many, NULL, 10) : SAMPLE, &seed);
    run_all(&cases);
}

/* Ranks that are threads: a world of every road, in a process each. Two or three, on two devices:
 * together they have few enough streams. */
static void threads_agree(void **state)
{
    (void)state;
    static const struct group mark;
    uint64_t seed = oracle_seed();
    struct oracle_cases cases = { 0 };
    threaded = &mark;
    for (int road = 0; road < ORACLE_ROADS; road++)
        for (size_t i = 0, ranks = 1 + oracle_any(&seed) % 2; i < THREAD_CASES;) {
            struct oracle_case c = open_case(
                KIND_BROADCAST
                + (enum kind)(oracle_any(&seed) % (KIND_ALL_TO_ALL_V - KIND_BARRIER)));
            c.v[DIM_RANKS] = (unsigned char)ranks;
            c.v[DIM_RULE] = road == ROAD_BY_DEFAULT ? RULE_DEFAULT : RULE_RING;
            c.v[DIM_ROAD] = (unsigned char)road;
            c.v[DIM_DEVICES] = (unsigned char)(oracle_any(&seed) % 2);
            if (oracle_any(&seed) % 3)
                favour(&c, &seed);
            i += oracle_chance(&cases, &c, &common, &seed);
        }
    bool all = !getenv("TUTTI_ORACLE_WORLD");
    uint64_t pulled = run_all(&cases);
    threaded = NULL;
    assert_true(!all || pulled);
}

/* ---- the corners ---- */

struct corner {
    enum kind kind;
    int ranks;
    enum oracle_rule rule;
    enum oracle_road road;
    enum oracle_size size;
    enum oracle_where where;
};

static const struct corner corners[] = {
    /* several rounds of a pipeline, by way of it and past it */
    { KIND_ALL_REDUCE, 2, RULE_DEFAULT, ROAD_BY_RULE_PINNED, SIZE_DEVICE_LARGE, WHERE_DEVICE },
    { KIND_ALL_REDUCE, 2, RULE_DEFAULT, ROAD_BY_DEFAULT, SIZE_DEVICE_RING_MORE, WHERE_DEVICE },
    { KIND_ALL_REDUCE, 3, RULE_DEFAULT, ROAD_BY_RULE_PEERS, SIZE_DEVICE_ROUND_MORE, WHERE_DEVICE },
    { KIND_ALL_REDUCE, 3, RULE_DEFAULT, ROAD_BY_RULE_PINNED, SIZE_DEVICE_ROUND_MORE, WHERE_SOME },
    { KIND_REDUCE, 3, RULE_DEFAULT, ROAD_BY_RULE_PINNED, SIZE_DEVICE_RING_MORE, WHERE_SEND },
    { KIND_BROADCAST, 3, RULE_DEFAULT, ROAD_BY_RULE_PINNED, SIZE_DEVICE_RING_MORE, WHERE_SOME },
    { KIND_ALL_GATHER, 2, RULE_DEFAULT, ROAD_BY_RULE_PINNED, SIZE_DEVICE_RING_LESS, WHERE_MIXED },
    { KIND_REDUCE_SCATTER, 2, RULE_DEFAULT, ROAD_BY_RULE_PINNED, SIZE_DEVICE_ROUND_MORE,
      WHERE_RECV },
    { KIND_SCAN, 2, RULE_DEFAULT, ROAD_BY_RULE_PINNED, SIZE_DEVICE_RING_MORE, WHERE_DEVICE },
    /* the threshold between the roads */
    { KIND_ALL_REDUCE, 4, RULE_RING, ROAD_BY_DEFAULT, SIZE_64K_LESS, WHERE_DEVICE },
    { KIND_ALL_REDUCE, 4, RULE_RING, ROAD_BY_DEFAULT, SIZE_64K, WHERE_DEVICE },
    { KIND_ALL_REDUCE, 4, RULE_RING, ROAD_BY_DEFAULT, SIZE_64K_MORE, WHERE_DEVICE },
    { KIND_ALL_TO_ALL, 4, RULE_RING, ROAD_BY_DEFAULT, SIZE_64K_MORE, WHERE_DEVICE },
    /* alone, and many */
    { KIND_ALL_REDUCE, 1, RULE_DEFAULT, ROAD_BY_DEFAULT, SIZE_64K_MORE, WHERE_DEVICE },
    { KIND_ALL_REDUCE, 8, RULE_DEFAULT, ROAD_BY_RULE_LEADER, SIZE_ODD, WHERE_DEVICE },
    { KIND_ALL_REDUCE, 8, RULE_DEFAULT, ROAD_BY_RULE_PEERS, SIZE_ODD, WHERE_DEVICE },
    { KIND_ALL_REDUCE, 8, RULE_DEFAULT, ROAD_BY_RULE_PEERS, SIZE_1, WHERE_DEVICE },
    { KIND_ALL_REDUCE, 7, RULE_RING, ROAD_BY_RULE_PEERS, SIZE_3, WHERE_DEVICE },
    { KIND_REDUCE_SCATTER, 8, RULE_RING, ROAD_BY_RULE_PEERS, SIZE_0, WHERE_DEVICE },
    { KIND_ALL_GATHER, 8, RULE_RING, ROAD_BY_RULE_PEERS, SIZE_0, WHERE_MIXED },
};

static void corners_agree(void **state)
{
    (void)state;
    uint64_t seed = 7;
    struct oracle_cases cases = { 0 };
    for (size_t i = 0; i < sizeof corners / sizeof corners[0]; i++) {
        const struct corner *at = &corners[i];
        struct oracle_case c = open_case(at->kind);
        c.v[DIM_RANKS] = (unsigned char)(at->ranks - 1);
        c.v[DIM_RULE] = (unsigned char)at->rule;
        c.v[DIM_ROAD] = (unsigned char)at->road;
        c.v[DIM_SIZE] = (unsigned char)at->size;
        c.v[DIM_WHERE] = (unsigned char)at->where;
        if (at->road && at->where == WHERE_DEVICE)
            favour(&c, &seed);
        /* the first operation with a device in a world goes by the host's geometry */
        for (int times = 0; times < 2; times++)
            assert_true(oracle_chance(&cases, &c, &large, &seed));
    }
    bool all = !getenv("TUTTI_ORACLE_WORLD");
    uint64_t pulled = run_all(&cases);
    assert_true(!all || pulled >= 2);           /* else it is not what the corners are meant for */
}

static void all_agree(void **state)
{
    (void)state;
    uint64_t seed = oracle_seed();
    struct oracle_cases cases = { 0 };
    for (enum kind kind = KIND_BROADCAST; kind <= KIND_ALL_TO_ALL_V; kind++) {
        size_t before = cases.used, pairs = oracle_pairs(&cases, kind, &everything, &seed),
               covers = cases.used - before;
        oracle_product(&cases, kind, &everything, &seed);
        printf("%s: %zu cases for %zu pairs, %zu of the product\n", kind_name(kind), covers, pairs,
               cases.used - before - covers);
    }
    run_all(&cases);
}

int main(int argc, char **argv)
{
    (void)argc;
    cases_with(argv, "fake_cuda");
    set("FAKE_CUDA_DEVICES", "4");
    /* a rank's staging for devices takes up to 16; under a sanitizer that is all there is */
    set("TUTTI_SPAN_BYTES", "64M");
    setenv("TUTTI_TIMEOUT_MS", "60000", 0);
    set("TUTTI_WARN_MS", "-1");
    const struct CMUnitTest tests[] = { cmocka_unit_test(corners_agree),
                                        cmocka_unit_test(threads_agree),
                                        cmocka_unit_test(samples_agree) };
    const struct CMUnitTest all[] = { cmocka_unit_test(all_agree) };
    int wrong = cmocka_run_group_tests(tests, NULL, NULL);
    return wrong
        + (oracle_prove() && !getenv("TUTTI_ORACLE_CASES") ? cmocka_run_group_tests(all, NULL, NULL)
                                                           : 0);
}
