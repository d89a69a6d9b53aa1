/* A rank that may lend what it gives, or what it has folded, chooses by what operations took of
 * late, from their call to their end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "coll/zero_copy.h"
#include "support/ranks.h"

#include <sched.h>
#include <stdlib.h>

enum { BYTES = 8 << 20, MANY = 200 };

/* Both get their tries, what is known decides between them, and each operation leaves
 * what it took. */
static void test_chooses(void **state)
{
    (void)state;
    struct tutti_comm *comm = calloc(1, sizeof *comm);
    assert_non_null(comm);
    for (int faster = 0; faster < 2; faster++) {
        struct tuner *row = comm->coll.zero_copy.results[faster];
        int zero_copy = 0;
        for (int i = 0; i < TUNER_TRIES; i++) {
            struct coll c = { .comm = comm };
            zero_copy += zero_copy_choose(&c, row, BYTES, ZERO_COPY_RESULTS_LEAST);
            c.zero_copy.began = 0;                   /* so it took long */
            zero_copy_learn(&c);
            assert_null(c.zero_copy.ways);
        }
        struct tuner *own = tuner_of(row, BYTES, ZERO_COPY_RESULTS_LEAST);
        assert_true(zero_copy > 0 && own->cost[0] > 0 && own->cost[1] > 0);
        zero_copy = 0;
        for (int i = 0; i < MANY; i++) {
            struct coll c = { .comm = comm };
            own->cost[faster] = 1000;
            own->cost[!faster] = 2000;
            zero_copy += zero_copy_choose(&c, row, BYTES, ZERO_COPY_RESULTS_LEAST);
        }
        assert_in_range(zero_copy, faster ? MANY - 4 : 1, faster ? MANY - 1 : 4);
    }
    free(comm);
}

/* Where there is no choice, and where it is not worth one, peers read it where it lies; nothing is
 * learnt from that. */
static void test_has_none(void **state)
{
    (void)state;
    struct tuner classes[TUNER_CLASSES] = { { { 1000, 1 }, TUNER_AGAIN + 1 } };
    struct coll c = { .zero_copy = { .yes = true } };
    assert_false(zero_copy_choose(&c, NULL, BYTES, ZERO_COPY_RESULTS_LEAST));
    zero_copy_learn(&c);
    assert_false(zero_copy_choose(&c, classes, ZERO_COPY_SENDS_LEAST - 1, ZERO_COPY_SENDS_LEAST));
    zero_copy_learn(&c);
    assert_int_equal(classes[0].cost[1], 1);
    assert_true(zero_copy_choose(&c, classes, ZERO_COPY_SENDS_LEAST, ZERO_COPY_SENDS_LEAST));
}

enum { BLOCK = 2 << 20, RANKS = 3, LATE_NS = 30000000 };
enum { WAITS };                                      /* a word of the page */

static void spin(uint64_t ns)
{
    for (uint64_t began = clock_ns(); clock_ns() - began < ns;)
        cpu_pause();
}

/* In rank 1, asleep behind its arrival: it reads only long after the root has come. */
static int comes_late(void *arg)
{
    const tutti_comm *world = arg;
    if (ranks_count(WAITS) == 0) {
        while (load_acquire64(&watch_arrival(&world->watch, 0, world->seq)->seq) < world->seq)
            sched_yield();
        spin(LATE_NS);
    }
    return 0;
}

/* A reader is late when the root, which lends, has done all it does itself. What the root notes is
 * the time until all have read. */
static int body_counts_readers(tutti_comm *world, int rank)
{
    char *send = calloc(RANKS, BLOCK), *recv = calloc(1, BLOCK);
    struct tuner *own =
        tuner_of(world->coll.zero_copy.sends, (size_t)RANKS * BLOCK, ZERO_COPY_SENDS_LEAST);
    CHECK(send && recv);
    world->crowded = true;
    uint64_t began = clock_tick();
    spin(LATE_NS);
    uint64_t late = clock_tick() - began;
    /* the first one finds out whether private memory can be read */
    CHECK_IS(tutti_scatter(send, recv, BLOCK, TUTTI_U8, 0, world, NULL), 0);
    if (world->coll.cma.said == CMA_YES) {
        if (rank == 1) {
            world->watch.interrupt = comes_late;
            world->watch.interrupt_arg = world;
        }
        CHECK(rank != 0 || ranks_await(WAITS, 1) == 0);
        CHECK_IS(tutti_scatter(send, recv, BLOCK, TUTTI_U8, 0, world, NULL), 0);
        CHECK_IS(own->n, rank == 0);
        CHECK(rank != 0 || own->cost[0] > late / 2 * 1024 / (RANKS * BLOCK));
    }
    free(send);
    free(recv);
    return 0;
}

static void test_counts_readers(void **state)
{
    (void)state;
    assert_int_equal(ranks_run(RANKS, body_counts_readers, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_chooses),
                                        cmocka_unit_test(test_has_none),
                                        cmocka_unit_test(test_counts_readers) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
