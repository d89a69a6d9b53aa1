/* The end of a handle reaches who sleeps for it, whenever that one lies down. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "engine/work.h"
#include "group/comm.h"

#include <pthread.h>
#include <sched.h>

enum { ROUNDS = 200 };
static const uint64_t HOURS = UINT64_C(7200000000000);

static void *sleep_for(void *arg)
{
    struct completion *completion = arg;
    while (!completion_over(completion))
        completion_sleep(completion, HOURS);
    return NULL;
}

/* Who lies down at any moment of the ringing gets up. Without the wake, or with one that comes
 * before the word, this never ends. */
static void test_sleeper(void **state)
{
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        struct completion completion = { 0 };
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, sleep_for, &completion), 0);
        while (i % 2 && load_acquire32(&completion.over) != COMPLETION_HEARD)
            sched_yield();
        completion_signal(&completion);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_true(completion_over(&completion));
    }
}

/* What is over is no reason to sleep, and being heard does not make it over. */
static void test_words(void **state)
{
    (void)state;
    struct completion completion = { 0 }, other = { 0 };
    assert_false(completion_over(&completion));
    assert_true(completion_heard(&completion));
    assert_false(completion_over(&completion));
    assert_true(completion_heard(&completion));
    completion_signal(&completion);
    assert_true(completion_over(&completion));
    assert_false(completion_heard(&completion));
    completion_signal(&other);
    completion_sleep(&other, HOURS);
    assert_true(completion_over(&other));
}

enum { LONG = 100000000 };

/* Who ends a work tells the comm's budget how long its waiter has slept, and of nobody who has
 * not. */
static void test_slept(void **state)
{
    static struct tutti_comm comm = { .watch.budget = { .spin_ticks = 64, .yields = 80 } };
    const struct { uint64_t ago; uint32_t over, yields; } rows[] = {
        { 0, COMPLETION_HEARD, 80 }, { LONG, 0, 80 },                 /* an eventfd's; polled */
        { LONG, COMPLETION_HEARD, 40 }, { LONG, COMPLETION_HEARD, 20 }
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct tutti_work work = { .comm = &comm, .completion.over = rows[i].over };
        work.slept_ns = rows[i].ago ? clock_ns() - rows[i].ago : 0;
        work_call_done(&work, NULL, 0);
        assert_int_equal(wait_yields(&comm.watch.budget), rows[i].yields);
    }
    struct wait_budget learned = wait_learned_budget(&comm.watch.budget);
    assert_true(learned.spin_ticks == 16 && wait_yields(&learned) == 20);
}

/* A wait that fell asleep long ago, and gives up. */
static int gives_up(struct tutti_work *work, const struct patience *patience)
{
    (void)patience;
    store_relaxed64(&work->slept_ns, clock_ns() - LONG);
    assert_true(completion_heard(&work->completion));
    return -EAGAIN;
}

/* Whose wait gave up does not sleep any more, however late the work ends. */
static void test_gave_up(void **state)
{
    static uint64_t word = 1;
    static const struct work_shape shape = { .await = gives_up };
    static struct tutti_comm comm = {
        .watch.budget = { .spin_ticks = 64, .yields = 80 }, .fork_word = &word
    };
    struct tutti_work work = { .shape = &shape, .comm = &comm, .keep_ns = -1 };
    (void)state;
    store_relaxed64(&comm.engine.caller, threads_self());
    assert_int_equal(work_wait(&work, 1), -EAGAIN);
    work_call_done(&work, NULL, 0);
    assert_int_equal(wait_yields(&comm.watch.budget), 80);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_sleeper),
                                        cmocka_unit_test(test_words),
                                        cmocka_unit_test(test_slept),
                                        cmocka_unit_test(test_gave_up) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
