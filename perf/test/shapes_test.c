/* The floors of collectives are tested by ranks that are threads: that they give right results, in
 * one piece and in more than a ring holds, again and again; and who may leave before others come:
 * nobody where it is all or none, a rank that only gives where it is as in MPI. */
#include "reports/bare_shapes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { RANKS = 4, TIMES = 9 };

typedef int (*shape_function)(struct rank *r, uint64_t times);

static struct bare bare;
static struct rank ranks[RANKS];
static pthread_t threads[RANKS];
static struct { shape_function run; shared64 wrong; shared32 gone; } job;

static void open_job(enum operation_id op, size_t bytes, shape_function run)
{
    size_t room = operation_room(op, RANKS, bytes);
    char *shared = calloc(1, bare_shapes_bytes(RANKS));
    assert_non_null(shared);
    memset(&bare, 0, sizeof bare);
    for (int p = 0; p < RANKS; p++) {
        ranks[p] = (struct rank){
            .me = p, .size = RANKS, .crowded = true, .bare = &bare, .shared = shared,
            .bytes = bytes, .hot = true, .op = op, .room = room,
            .sends = malloc(room), .recvs = malloc(room)
        };
        assert_true(ranks[p].sends && ranks[p].recvs);
    }
    job.run = run;
    store_release64(&job.wrong, 0);
    store_release32(&job.gone, 0);
}

static void *live(void *arg)
{
    struct rank *r = arg;
    for (int i = 0; i < TIMES; i++) {
        operation_fill(r);
        job.run(r, 1);
        fetch_add64(&job.wrong, operation_wrong(r));
        fetch_add32(&job.gone, 1);
    }
    return NULL;
}

static void begin(int p)
{
    assert_int_equal(pthread_create(&threads[p], NULL, live, &ranks[p]), 0);
}

static void close_job(void)
{
    for (int p = 0; p < RANKS; p++) {
        pthread_join(threads[p], NULL);
        free(ranks[p].sends);
        free(ranks[p].recvs);
    }
    free(ranks[0].shared);
}

static void test_results_are_right(void **state)
{
    static const enum operation_id ops[] = {
        OP_BROADCAST, OP_REDUCE, OP_ALL_REDUCE, OP_REDUCE_SCATTER, OP_GATHER, OP_SCATTER,
        OP_ALL_GATHER, OP_ALL_TO_ALL, OP_SCAN, OP_EXSCAN, OP_SENDRECV
    };
    static const size_t sizes[] = { 4, 64 << 10, (64 << 10) + 4, 600 << 10 };
    static const shape_function forms[] = {
        bare_shapes_all, bare_shapes_all_past, bare_shapes_loose, bare_shapes_loose_past
    };
    (void)state;
    for (size_t k = 0; k < sizeof ops / sizeof *ops; k++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            for (size_t b = 0; b < sizeof forms / sizeof *forms; b++) {
                open_job(ops[k], sizes[i], forms[b]);
                for (int p = 0; p < RANKS; p++)
                    begin(p);
                close_job();
                assert_int_equal(load_acquire64(&job.wrong), 0);
            }
}

/* The root of a broadcast gives and takes nothing: alone it comes as far as its ring is long. */
static void test_who_gives_may_leave(void **state)
{
    (void)state;
    open_job(OP_BROADCAST, 4, bare_shapes_loose);
    begin(0);
    while (load_acquire32(&job.gone) == 0)
        sched_yield();
    for (int p = 1; p < RANKS; p++)
        begin(p);
    close_job();
    assert_int_equal(load_acquire32(&job.gone), RANKS * TIMES);
}

/* One rank after the other comes, and has arrived: nobody has left. */
static void test_all_or_none(void **state)
{
    (void)state;
    open_job(OP_BROADCAST, 4, bare_shapes_all);
    for (int p = 0; p < RANKS - 1; p++) {
        begin(p);
        while (load_acquire64(&bare.count.word) < (uint64_t)p + 1)
            sched_yield();
        for (int i = 0; i < 100; i++)
            sched_yield();
        assert_int_equal(load_acquire32(&job.gone), 0);
    }
    begin(RANKS - 1);
    close_job();
    assert_int_equal(load_acquire64(&job.wrong), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_results_are_right),
        cmocka_unit_test(test_who_gives_may_leave),
        cmocka_unit_test(test_all_or_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
