/* ctest: timeout=300 labels=tsan */
/* A key's runner enters a collective that needs a rank which waits for the key: nothing can end
 * that, so all get -EDEADLK with the table. As much of the test is that it does not fire where
 * somebody could still end it. No call here has a deadline: what is not found hangs until the job's
 * life is over. */
#include "group/comm.h"
#include "support/ranks.h"

#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { BEGUN = 0, GO = 1, OVER = 2 };

static int until_arrived(tutti_comm *comm, int rank, uint64_t operation)
{
    struct watch *w = &comm->watch;
    uint64_t seq = w->arena->header->first_seq + operation;
    for (long i = 0; i < 60000000; i++) {
        if (load_acquire64(&watch_arrival(w, (uint32_t)rank, seq)->seq) >= seq)
            return 0;
        sched_yield();
    }
    return -1;
}

/* The waiters sleep already when the runner comes to the barrier; rank 3 waits in the barrier from
 * the start. */
static int body_waiter_first(tutti_comm *world, int rank)
{
    CHECK_IS(tutti_set_timeout(world, -1), 0);
    if (rank == 0) {
        CHECK_IS(tutti_first_begin("k", world, NULL), 1);
        ranks_say(BEGUN, 1);
        CHECK(ranks_sleeps_for_key(world, 1) == 0 && ranks_sleeps_for_key(world, 2) == 0
              && until_arrived(world, 3, 1) == 0);
        CHECK_IS(tutti_barrier(world, NULL), -EDEADLK);
        CHECK(strstr(tutti_explain(world), "never end")
              && strstr(tutti_explain(world), "first_begin at"));
        CHECK(strstr(tutti_explain(world), "deadlock_test.c"));
        ranks_say(GO, 1);
        CHECK_IS(ranks_await(OVER, 2), 0);
        CHECK_IS(tutti_first_end("k", -EDEADLK, world), -EDEADLK);
    } else if (rank == 3) {
        CHECK_IS(tutti_barrier(world, NULL), -EDEADLK);
        CHECK(strstr(tutti_explain(world), "never end"));
    } else {
        CHECK_IS(ranks_await(BEGUN, 1), 0);
        CHECK_IS(tutti_first_begin("k", world, NULL), -EDEADLK);
        CHECK(strstr(tutti_explain(world), "\"k\"") && strstr(tutti_explain(world), "rank 0"));
        ranks_count(OVER);
        /* or the runner's table would show where we went from here */
        CHECK_IS(ranks_await(GO, 1), 0);
    }
    CHECK_IS(tutti_barrier(world, NULL), -ECANCELED);
    return 0;
}

static void test_waiter_first(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(4, body_waiter_first), 0);
}

/* The runner waits in the barrier already when the others come to the key. */
static int body_runner_first(tutti_comm *world, int rank)
{
    CHECK_IS(tutti_set_timeout(world, -1), 0);
    if (rank == 0) {
        CHECK_IS(tutti_first_begin("k", world, NULL), 1);
        ranks_say(BEGUN, 1);
        CHECK_IS(tutti_barrier(world, NULL), -EDEADLK);
    } else {
        CHECK_IS(ranks_await(BEGUN, 1), 0);
        CHECK_IS(until_arrived(world, 0, 1), 0);
        int r = tutti_first_begin("k", world, NULL);
        /* Who comes when the comm has been broken by the others is told that. */
        CHECK(r == -EDEADLK || r == -ECANCELED);
        if (r == -EDEADLK)
            ranks_count(OVER);
    }
    ranks_count(GO);
    CHECK_IS(ranks_await(GO, 3), 0);
    CHECK(load_acquire32(&page->word[OVER]) >= 1);
    return 0;
}

static void test_runner_first(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(3, body_runner_first), 0);
}

static _Thread_local tutti_comm *sub;

static int barrier_in_sub(void *arg)
{
    (void)arg;
    ranks_say(BEGUN, 1);
    return ranks_sleeps_for_key(sub, 1) < 0 ? -EIO : tutti_barrier(sub, NULL);
}

/* Through another comm: once on the world, a barrier on a copy of it inside. The copy is broken by
 * it, the world is whole. */
static int body_sub_comm(tutti_comm *world, int rank)
{
    CHECK_IS(tutti_set_timeout(world, -1), 0);
    CHECK_IS(tutti_comm_split(world, 0, 0, &sub), 0);
    if (rank == 1)
        CHECK_IS(ranks_await(BEGUN, 1), 0);
    CHECK_IS(tutti_once("k", barrier_in_sub, NULL, world, NULL), -EDEADLK);
    /* the waiter meets it there first */
    CHECK_IS(tutti_barrier(sub, NULL), rank ? -EDEADLK : -ECANCELED);
    CHECK_IS(tutti_comm_free(sub), 0);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    return 0;
}

static void test_sub_comm(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(2, body_sub_comm), 0);
}

/* A deadlock that was met is over: the round goes to the next rank, and who waits for that one
 * waits in peace. */
static int body_after_it(tutti_comm *world, int rank)
{
    CHECK_IS(tutti_comm_split(world, rank == 2 ? -1 : 0, 0, &sub), 0);
    if (rank == 0) {
        CHECK_IS(tutti_first_begin("k", world, NULL), 1);
        ranks_say(BEGUN, 1);
        CHECK_IS(ranks_sleeps_for_key(world, 1), 0);
        CHECK_IS(tutti_barrier(sub, NULL), -EDEADLK);
        CHECK_IS(tutti_first_end("k", -EIO, world), -EIO);
        ranks_say(GO, 1);
    }
    if (rank == 1) {
        CHECK_IS(ranks_await(BEGUN, 1), 0);
        CHECK_IS(tutti_first_begin("k", world, NULL), -EDEADLK);
        CHECK_IS(ranks_await(GO, 1), 0);
        CHECK_IS(tutti_first_begin("k", world, NULL), 1);
        ranks_say(GO, 2);
        CHECK(ranks_sleeps_for_key(world, 0) == 0 && ranks_sleeps_for_key(world, 2) == 0);
        CHECK_IS(tutti_first_end("k", 0, world), 0);
    } else {
        CHECK_IS(ranks_await(GO, 2), 0);
        CHECK_IS(tutti_first_begin("k", world, NULL), 0);
    }
    CHECK_IS(tutti_barrier(world, NULL), 0);
    return 0;
}

static void test_after_it(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(3, body_after_it), 0);
}

/* Holds the waiter's progress thread until the runner is in its next barrier, so that the waiter
 * cannot have arrived there. */
static void hold_progress(int error, void *arg)
{
    tutti_comm *world = arg;
    if (error == 0)
        until_arrived(world, 0, load_acquire64(&page->number[0]) + 2);
}

/* The waiter has that collective under way as work, behind another one: it will arrive, so the
 * runner's barrier ends. */
static int body_waiter_has_queued(tutti_comm *world, int rank)
{
    tutti_work *work[3];
    for (uint32_t n = 0; n < 10; n++) {
        if (rank == 0) {
            store_release64(&page->number[0], 4 * n);        /* operations before this round */
            CHECK_IS(tutti_first_begin("q", world, NULL), 1);
            ranks_say(BEGUN, n + 1);
            CHECK_IS(ranks_sleeps_for_key(world, 1), 0);
            for (int i = 0; i < 3; i++)
                CHECK_IS(tutti_barrier(world, NULL), 0);
            CHECK_IS(tutti_first_end("q", 0, world), 0);
        } else {
            CHECK_IS(ranks_await(BEGUN, n + 1), 0);
            for (int i = 0; i < 3; i++)
                CHECK_IS(tutti_barrier(world,
                                       &(tutti_call){ .work = &work[i],
                                                      .done = i ? NULL : hold_progress,
                                                      .done_arg = world }),
                         0);
            CHECK_IS(tutti_first_begin("q", world, NULL), 0);
            for (int i = 0; i < 3; i++)
                CHECK_IS(tutti_wait(work[i], 0), 0);
        }
        CHECK_IS(tutti_barrier(world, NULL), 0);
    }
    return 0;
}

static void test_waiter_has_queued(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(2, body_waiter_has_queued), 0);
}

/* The runner only starts the collective and goes on: it can end its key. Both orders of arrival. */
static int body_runner_starts_work(tutti_comm *world, int rank)
{
    tutti_work *work;
    tutti_call start = { .work = &work };
    for (int n = 0; n < 20; n++) {
        uint32_t round = (uint32_t)n + 1;
        if (rank == 0) {
            CHECK_IS(tutti_first_begin("w", world, NULL), 1);
            if (n & 1)
                CHECK_IS(tutti_barrier(world, &start), 0);
            ranks_say(BEGUN, round);
            CHECK_IS(ranks_sleeps_for_key(world, 1), 0);
            if (!(n & 1))
                CHECK_IS(tutti_barrier(world, &start), 0);
            for (int i = 0; i < 300; i++)           /* time for the waiter to look at it often */
                sched_yield();
            CHECK_IS(tutti_test(work), -EAGAIN);
            /* a wait that ends by itself is none that never ends */
            CHECK_IS(tutti_wait(work, 5), -EAGAIN);
            CHECK_IS(tutti_first_end("w", 0, world), 0);
        } else {
            CHECK_IS(ranks_await(BEGUN, round), 0);
            CHECK_IS(tutti_first_begin("w", world, NULL), 0);
            CHECK_IS(tutti_barrier(world, &start), 0);
        }
        CHECK_IS(tutti_wait(work, 0), 0);
    }
    return 0;
}

static void test_runner_starts_work(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(2, body_runner_starts_work), 0);
}

/* It starts it, and then waits for it inside the key after all. */
static int body_runner_waits_for_work(tutti_comm *world, int rank)
{
    tutti_work *work;
    CHECK_IS(tutti_set_timeout(world, -1), 0);
    if (rank == 0) {
        CHECK_IS(tutti_first_begin("w", world, NULL), 1);
        ranks_say(BEGUN, 1);
        CHECK_IS(tutti_barrier(world, &(tutti_call){ .work = &work }), 0);
        CHECK_IS(tutti_wait(work, -1), -EDEADLK);
        CHECK_IS(tutti_first_end("w", 1, world), 1);
    } else {
        CHECK_IS(ranks_await(BEGUN, 1), 0);
        CHECK_IS(tutti_first_begin("w", world, NULL), -EDEADLK);
    }
    return 0;
}

static void test_runner_waits_for_work(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(2, body_runner_waits_for_work), 0);
}

/* Collectives that the waiter is no member of are the runner's own affair: made before the key,
 * and in it. */
static int body_none_of_its_business(tutti_comm *world, int rank)
{
    tutti_comm *pair = NULL, *later = NULL;
    int list[2] = { 0, 1 };
    if (rank < 2)
        CHECK_IS(tutti_comm_create(world, list, 2, &pair), 0);
    if (rank == 0) {
        CHECK_IS(tutti_first_begin("n", world, NULL), 1);
        ranks_say(BEGUN, 1);
        CHECK_IS(ranks_sleeps_for_key(world, 2), 0);
    } else
        CHECK_IS(ranks_await(BEGUN, 1), 0);
    if (rank < 2) {
        CHECK_IS(tutti_barrier(pair, NULL), 0);
        CHECK_IS(tutti_comm_create(world, list, 2, &later), 0);
        CHECK_IS(tutti_barrier(later, NULL), 0);
        CHECK_IS(tutti_comm_free(pair), 0);
        CHECK_IS(tutti_comm_free(later), 0);
    }
    if (rank == 0)
        CHECK_IS(tutti_first_end("n", 0, world), 0);
    if (rank == 2)
        CHECK_IS(tutti_first_begin("n", world, NULL), 0);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    return 0;
}

static void test_none_of_its_business(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(3, body_none_of_its_business), 0);
}

/* A comm that was made while the key ran is looked at like the others. */
static int body_comm_made_meanwhile(tutti_comm *world, int rank)
{
    tutti_comm *later;
    CHECK_IS(tutti_set_timeout(world, -1), 0);
    if (rank == 0)
        CHECK_IS(tutti_first_begin("m", world, NULL), 1);
    CHECK_IS(tutti_comm_split(world, 0, 0, &later), 0);
    if (rank == 0) {
        CHECK_IS(ranks_sleeps_for_key(world, 1), 0);
        CHECK_IS(tutti_barrier(later, NULL), -EDEADLK);
        CHECK_IS(tutti_first_end("m", 1, world), 1);
    } else
        CHECK_IS(tutti_first_begin("m", world, NULL), -EDEADLK);
    CHECK_IS(tutti_comm_free(later), 0);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    return 0;
}

static void test_comm_made_meanwhile(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(2, body_comm_made_meanwhile), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_waiter_first),
        cmocka_unit_test(test_runner_first),
        cmocka_unit_test(test_sub_comm),
        cmocka_unit_test(test_after_it),
        cmocka_unit_test(test_waiter_has_queued),
        cmocka_unit_test(test_runner_starts_work),
        cmocka_unit_test(test_runner_waits_for_work),
        cmocka_unit_test(test_none_of_its_business),
        cmocka_unit_test(test_comm_made_meanwhile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
