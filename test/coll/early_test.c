/* ctest: timeout=300 labels=tsan,faults */
/* What the one rank that takes, of two, takes before the other has arrived: the same bits as
 * without; nothing of another operation; the rank that gives late, dead or hostile in between. */
#include "base/copy.h"
#include "coll/early.h"
#include "support/ranks.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 300000, WORDS = 3 * EARLY_LEAST / 4 + 5 };

static int value(size_t i, int seed) { return (int)(i * 2654435761u >> 11 & 0xfffff) + seed; }

static void fill(int *x, size_t n, int seed)
{
    for (size_t i = 0; i < n; i++)
        x[i] = value(i, seed);
}

static bool spins(const tutti_comm *world)
{
    return world->watch.budget.spin_ticks && !world->crowded;
}

/* Rank p is in the operation that this rank will call next. */
static void await(tutti_comm *world, int p)
{
    while (load_acquire64(&watch_arrival(&world->watch, (uint32_t)p, world->seq + 1)->seq)
           <= world->seq)
        cpu_pause();
}

static bool told(const tutti_comm *world)
{
    return load_relaxed64(&world->watch.mine->early) >> 16 == world->seq;
}

/* Both roots; who gives waits until the other is there. */
static int body_lengths(tutti_comm *world, int rank)
{
    static const size_t counts[] = { EARLY_LEAST / 4 - 1, EARLY_LEAST / 4, EARLY_LEAST / 4 + 1,
                                     5000, 8192, 16383, 16384, 16385, 9001, 65536, 1 };
    enum { COUNTS = sizeof counts / sizeof counts[0] };
    int *x = malloc(MOST), *y = malloc(MOST), early = 0;
    CHECK(x && y);
    for (int k = 0; k < 12 * COUNTS; k++) {
        size_t n = counts[k % COUNTS];
        int root = k / COUNTS & 1;
        bool reduces = k / COUNTS & 2, gives = (rank == root) != reduces;
        fill(x, n, k + 100 * rank);
        memset(y, 0xee, 4 * n + 4);
        if (gives && spins(world))
            await(world, 1 - rank);
        CHECK_IS(reduces ? tutti_reduce(x, y, n, TUTTI_I32, TUTTI_MAX, root, world, NULL)
                         : tutti_broadcast(rank == root ? x : y, n, TUTTI_I32, root, world, NULL),
                 0);
        early += told(world);
        CHECK(!told(world) || (gives && n * 4 >= EARLY_LEAST));
        for (size_t i = 0; i < n && !gives; i++)
            CHECK_IS(y[i], value(i, k + (reduces ? 100 : 100 * root)));
        CHECK_IS(*(unsigned char *)&y[n], 0xee);
    }
    CHECK_IS(early > 0, spins(world));
    free(x);
    free(y);
    return 0;
}

/* The same in pieces: a broadcast, and a gather, whose root keeps a block, too. */
static int body_pieces(tutti_comm *world, int rank)
{
    static const size_t counts[] = { 65537, 73728, 98303, 131072, 200001, 400003, 65536 };
    enum { COUNTS = sizeof counts / sizeof counts[0], LARGEST = 400003 };
    int *x = malloc(4 * LARGEST), *y = malloc(8 * LARGEST + 4), early = 0;
    CHECK(x && y);
    for (int k = 0; k < 8 * COUNTS; k++) {
        size_t n = counts[k % COUNTS];
        int root = k / COUNTS & 1;
        bool gathers = k / COUNTS & 2, takes = (rank == root) == gathers;
        fill(x, n, k + 100 * rank);
        memset(y, 0xee, 8 * n + 4);
        if (!takes && spins(world))
            await(world, 1 - rank);
        CHECK_IS(gathers ? tutti_gather(x, y, n, TUTTI_I32, root, world, NULL)
                         : tutti_broadcast(takes ? y : x, n, TUTTI_I32, root, world, NULL), 0);
        early += told(world);
        CHECK(!told(world) || !takes);
        for (size_t i = 0; takes && i < n; i++)
            CHECK_IS(y[i], value(i, k + (gathers ? 0 : 100 * root)));
        for (size_t i = 0; takes && gathers && i < n; i++)
            CHECK_IS(y[n + i], value(i, k + 100));
        CHECK_IS(*(unsigned char *)&y[gathers ? 2 * n : n], 0xee);
    }
    CHECK_IS(early > 0, spins(world));
    free(x);
    free(y);
    return 0;
}

/* A gather in one phase. Its root has a block of its own to copy, before it follows the other. */
static int body_gathered(tutti_comm *world, int rank)
{
    static const size_t counts[] = { 16383, 16384, 16385, 32768, 40001, 65535, 65536, 1 };
    enum { COUNTS = sizeof counts / sizeof counts[0], LEAST = 16384, LARGEST = 65536,
           CALLS = 12 * COUNTS };
    int *x = malloc(4 * LARGEST), *y = malloc(8 * LARGEST + 4);
    CHECK(x && y);
    for (int k = 0; k < CALLS; k++) {
        size_t n = counts[k % COUNTS];
        int root = k / COUNTS & 1;
        bool in_place = k / COUNTS & 2;
        fill(x, n, k + 100 * rank);
        memset(y, 0xee, 8 * n + 4);
        if (in_place)
            fill(y + (size_t)rank * n, n, k + 100 * rank);
        if (rank != root && spins(world))
            await(world, root);
        CHECK_IS(tutti_gather(in_place && rank == root ? y + (size_t)rank * n : x, y, n, TUTTI_I32,
                              root, world, NULL), 0);
        CHECK_IS(told(world),
                 rank != root && n >= LEAST && spins(world) && copy_takes_over(4 * n));
        for (size_t i = 0; rank == root && i < 2 * n; i++)
            CHECK_IS(y[i], value(i % n, k + 100 * (int)(i / n)));
        CHECK_IS(*(unsigned char *)&y[2 * n], 0xee);
    }
    free(x);
    free(y);
    return 0;
}

/* The same of a scan and an exscan, of which rank 1 takes: by one phase, in place and not. */
static int body_scanned(tutti_comm *world, int rank)
{
    static const size_t counts[] = { EARLY_LEAST / 4 - 1, EARLY_LEAST / 4, EARLY_LEAST / 4 + 1,
                                     5000, 16385, 40001, 65536, 1 };
    enum { COUNTS = sizeof counts / sizeof counts[0] };
    int *x = malloc(MOST), *y = malloc(MOST), early = 0;
    CHECK(x && y);
    for (int k = 0; k < 16 * COUNTS; k++) {
        size_t n = counts[k % COUNTS];
        bool scans = k / COUNTS & 1, in_place = k / COUNTS & 2;
        fill(x, n, k + 100 * rank);
        memset(y, 0xee, 4 * n + 4);
        if (in_place)
            fill(y, n, k + 100 * rank);
        if (rank == 0 && spins(world))
            await(world, 1);
        CHECK_IS((scans ? tutti_scan : tutti_exscan)(in_place ? y : x, y, n, TUTTI_I32, TUTTI_SUM,
                                                     world, NULL), 0);
        early += told(world);
        CHECK(!told(world) || (rank == 0 && n * 4 >= EARLY_LEAST));
        for (size_t i = 0; i < n && (scans || rank); i++)
            CHECK_IS(y[i], value(i, k) + (scans && rank ? value(i, k + 100) : 0));
        CHECK_IS(*(unsigned char *)&y[n], 0xee);
    }
    CHECK_IS(early > 0, rank == 0 && spins(world));
    free(x);
    free(y);
    return 0;
}

/* Says, as soon as the other rank waits, that `chunks` of x are there, as early_put does; and does
 * not arrive. */
static void say(tutti_comm *world, const int *x, uint64_t what, uint64_t at, uint64_t chunks,
                uint64_t ahead)
{
    struct member *mine = world->watch.mine;
    uint64_t seq = world->seq + 1;
    char *slot = NULL;
    comm_stage_eager(world, seq, WORDS * 4, WORDS * 4, false, &slot);
    memcpy(slot, x, WORDS * 4);
    if (spins(world))
        await(world, 1);
    store_relaxed64(&mine->early_at, at ? at : (uint64_t)(slot - world->world->arena.base));
    store_relaxed64(&mine->early_what, what);
    store_release64(&mine->early, (seq + ahead) << 16 | chunks);
}

static uint64_t broadcast(void)
{
    return fingerprint_make(KIND_BROADCAST, TUTTI_I32, 0, 0, WORDS);
}

/* It dies there: the other is told, and has no result. */
static int body_killed(tutti_comm *world, int rank)
{
    static int x[WORDS];
    if (rank == 0) {
        fill(x, WORDS, 1);
        say(world, x, broadcast(), 0, 2, 0);
        ranks_die();
    }
    CHECK_IS(tutti_broadcast(x, WORDS, TUTTI_I32, 0, world, NULL), -EOWNERDEAD);
    CHECK(ranks_explain(world, "died, killed by signal 9"));
    return 0;
}

/* It says so in another call, of another operation, of what is not in the arena, or of more than
 * there is: what comes with its arrival is right, and in a mismatch nothing is taken. */
static int body_hostile(tutti_comm *world, int rank)
{
    enum { LIES = 4, TIMES = 40 };     /* the other rank looks for a moment only */
    int *x = malloc(WORDS * 4), *y = malloc(WORDS * 4);
    CHECK(x && y);
    for (int n = 0; n < TIMES * (LIES + 1); n++) {
        int k = n % (LIES + 1);
        tutti_comm *comm;
        CHECK_IS(tutti_comm_split(world, 0, rank, &comm), 0);
        fill(x, WORDS, k);
        fill(y, WORDS, k == 2 ? k : k + 50);
        if (rank == 0) {
            say(comm, y, k == 0 || k == LIES ? broadcast() + 1 : broadcast(),
                k == 1 ? UINT64_MAX - 64 : 0, k == 2 ? 0xffff : 1, k == 3 ? 2 : 0);
        } else
            memset(x, 0, WORDS * 4);
        if (k == LIES && rank == 0)
            CHECK_IS(tutti_barrier(comm, NULL), -EPROTO);
        else
            CHECK_IS(tutti_broadcast(x, WORDS, TUTTI_I32, 0, comm, NULL), k == LIES ? -EPROTO : 0);
        for (size_t i = 0; i < WORDS; i++)
            CHECK_IS(x[i], k == LIES && rank ? 0 : value(i, k));
        tutti_comm_free(comm);
    }
    free(x);
    free(y);
    return 0;
}

static void test_lengths(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(2, body_lengths), 0);
}

static void test_pieces(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(2, body_pieces), 0);
}

static void test_gathered(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(2, body_gathered), 0);
}

static void test_scanned(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(2, body_scanned), 0);
}

static void test_killed(void **state)
{
    (void)state;
    assert_int_equal(ranks_run(2, body_killed, 1), 0);
}

static void test_hostile(void **state)
{
    (void)state;
    assert_int_equal(ranks_run(2, body_hostile, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_gathered),
        cmocka_unit_test(test_scanned),
        cmocka_unit_test(test_killed),
        cmocka_unit_test(test_hostile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
