/* ctest: timeout=300 labels=tsan */
/* How operations under way fail: deaths, deadlines, a start that fails. Where a test needs that
 * something has not happened yet, a rank holds back its part until it is told. */
#include "support/ranks.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { GO = 0, HERE = 1, DONE_RUNS = 2, ORDER = 3, OVER = 4 };
enum { INLINE_COUNT = 8, EAGER_COUNT = 2000, PIPELINED_COUNT = 60000 };

static void done_flag(int error, void *arg)
{
    int *told = arg;
    told[0]++;
    told[1] = error;
}

/* A rank that leaves: the first ends with the cause, what stands behind with -ECANCELED, and so
 * does every later call. */
static int body_failure(tutti_comm *world, int rank)
{
    tutti_work *work[4];
    int told[4][2] = { { 0 } };
    float x[EAGER_COUNT] = { 0 };
    if (rank == 1) {
        CHECK_IS(ranks_await(HERE, 2), 0);
        ranks_die();
    }
    for (int i = 0; i < 4; i++)
        CHECK_IS(tutti_all_reduce(x, x, EAGER_COUNT, TUTTI_F32, TUTTI_SUM, world,
                                  &(tutti_call){
                                      .work = &work[i], .done = done_flag, .done_arg = told[i] }),
                 0);
    ranks_count(HERE);
    for (long i = 0; tutti_test(work[3]) == -EAGAIN && i < 100000000; i++)
        sched_yield();
    for (int i = 0; i < 4; i++) {
        int expected = i ? -ECANCELED : -EOWNERDEAD;
        CHECK_IS(told[i][0], 1);
        CHECK_IS(told[i][1], expected);
        CHECK_IS(tutti_test(work[i]), expected);
        CHECK_IS(tutti_wait(work[i], 0), expected);
    }
    CHECK(strstr(tutti_explain(world), "rank 1"));
    tutti_work *none = (tutti_work *)(void *)world;
    CHECK_IS(tutti_barrier(world,
                           &(tutti_call){ .work = &none, .done = done_flag, .done_arg = told[0] }),
             -ECANCELED);
    CHECK(none == NULL);
    CHECK_IS(told[0][0], 1);                        /* a call that fails to start tells nobody */
    CHECK_IS(tutti_barrier(world, NULL), -ECANCELED);
    return 0;
}

static void note_error(int error, void *arg)
{
    store_release64(arg, (uint64_t)-error);
    ranks_count(ORDER);
}

/* Nobody calls anything at all: the progress thread finds the death by itself. */
static int body_failure_found(tutti_comm *world, int rank)
{
    tutti_work *work;
    if (rank == 1) {
        CHECK_IS(ranks_await(HERE, 2), 0);
        ranks_die();
    }
    CHECK_IS(tutti_barrier(world,
                           &(tutti_call){ .work = &work,
                                          .done = note_error,
                                          .done_arg = (void *)&page->number[rank] }),
             0);
    ranks_count(HERE);
    CHECK_IS(ranks_await(ORDER, 2), 0);
    CHECK_IS(load_acquire64(&page->number[rank]), EOWNERDEAD);
    CHECK_IS(tutti_wait(work, 0), -EOWNERDEAD);
    return 0;
}

static void test_failure(void **state)
{
    (void)state;
    assert_int_equal(ranks_run(3, body_failure, 1 << 1), 0);
    assert_int_equal(ranks_run(3, body_failure_found, 1 << 1), 0);
}

static int body_start_fails(tutti_comm *world, int rank)
{
    int x = 1;
    int told[2] = { 0, 0 };
    tutti_work *work = (tutti_work *)(void *)world, *good;
    tutti_call call = { .work = &work, .done = done_flag, .done_arg = told };
    CHECK_IS(tutti_all_reduce(&x, &x, 1, TUTTI_F32, TUTTI_BAND, world, &call), -EINVAL);
    CHECK(work == NULL);
    work = (tutti_work *)(void *)world;
    CHECK_IS(tutti_broadcast(&x, 1, TUTTI_I32, 99, world, &call), -EINVAL);
    CHECK(work == NULL);
    work = (tutti_work *)(void *)world;
    call.flags = 8;
    CHECK_IS(tutti_barrier(world, &call), -EINVAL);
    CHECK(work == NULL);
    CHECK_IS(told[0], 0);
    CHECK_IS(tutti_barrier(world, &(tutti_call){ .flags = TUTTI_KEEP }), -EINVAL);
    CHECK_IS(tutti_barrier(world, &(tutti_call){ .done = done_flag }), -EINVAL);
    CHECK_IS(tutti_wait(NULL, 0), -EINVAL);
    CHECK_IS(tutti_test(NULL), -EINVAL);
    CHECK_IS(tutti_barrier(world, &(tutti_call){ .work = &good }), 0);
    CHECK_IS(tutti_wait(good, 0), 0);
    (void)rank;
    return 0;
}

static void test_start_fails(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(2, body_start_fails), 0);
}

/* A deadline counts from the call, and also where the call stands behind one that has none: rank 1
 * never comes. */
static int body_deadlines(tutti_comm *world, int rank)
{
    tutti_work *work[3];
    CHECK_IS(tutti_set_timeout(world, -1), 0);
    if (rank == 1) {
        CHECK_IS(ranks_await(GO, 1), 0);
        CHECK_IS(tutti_barrier(world, NULL), -ETIMEDOUT); /* it is late: the others have given up */
        return 0;
    }
    CHECK_IS(tutti_barrier(world, &(tutti_call){ .work = &work[0] }), 0);
    CHECK_IS(tutti_barrier(world, &(tutti_call){ .work = &work[1], .timeout_ms = 30 }), 0);
    CHECK_IS(tutti_barrier(world, &(tutti_call){ .work = &work[2] }), 0);
    CHECK_IS(tutti_wait(work[2], -1), -ECANCELED);
    CHECK_IS(tutti_wait(work[1], 0), -ECANCELED);
    CHECK_IS(tutti_wait(work[0], 0), -ETIMEDOUT);
    CHECK(strstr(tutti_explain(world), "rank 1"));
    ranks_say(GO, 1);
    return 0;
}

static int body_deadline_of_its_own(tutti_comm *world, int rank)
{
    tutti_work *work;
    if (rank == 0) {
        CHECK_IS(tutti_barrier(world, &(tutti_call){ .work = &work, .timeout_ms = 30 }), 0);
        CHECK_IS(tutti_wait(work, 0), -ETIMEDOUT);
        ranks_say(GO, 1);
    }
    CHECK_IS(ranks_await(GO, 1), 0);
    CHECK_IS(tutti_barrier(world, NULL), rank ? -ETIMEDOUT : -ECANCELED);
    return 0;
}

static void test_deadlines(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(2, body_deadlines), 0);
    assert_int_equal(ranks_run_either(2, body_deadline_of_its_own), 0);
}

/* TUTTI_KEEP: the deadline is news for this rank alone. The operation goes on in its place, what
 * stands behind waits. */
static int body_keep(tutti_comm *world, int rank)
{
    int x = 1;
    tutti_work *kept, *behind;
    if (rank == 1)
        CHECK_IS(ranks_await(GO, 1), 0);
    else {
        CHECK_IS(tutti_all_reduce(&x, &x, 1, TUTTI_I32, TUTTI_SUM, world,
                                  &(tutti_call){
                                      .work = &kept, .flags = TUTTI_KEEP, .timeout_ms = 20 }),
                 0);
        CHECK_IS(tutti_barrier(world, &(tutti_call){ .work = &behind }), 0);
        CHECK_IS(tutti_wait(kept, 60000), -ETIMEDOUT);      /* the moment it passes ends the wait */
        CHECK_IS(tutti_wait(kept, 0), -ETIMEDOUT);
        CHECK_IS(tutti_wait(kept, 3), -ETIMEDOUT);
        CHECK_IS(tutti_test(kept), -ETIMEDOUT);
        CHECK_IS(tutti_test(behind), -EAGAIN);
        ranks_say(GO, 1);
        CHECK_IS(tutti_wait(kept, -1), 0);
        CHECK_IS(x, 2);
        CHECK_IS(tutti_wait(behind, 0), 0);
        CHECK_IS(tutti_barrier(world, NULL), 0);
        return 0;
    }
    CHECK_IS(tutti_all_reduce(&x, &x, 1, TUTTI_I32, TUTTI_SUM, world, NULL), 0);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    return 0;
}

static void test_keep(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(2, body_keep), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_failure),
        cmocka_unit_test(test_start_fails),
        cmocka_unit_test(test_deadlines),
        cmocka_unit_test(test_keep),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
