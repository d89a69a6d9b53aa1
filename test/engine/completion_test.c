/* The end of a handle reaches who sleeps for it, whenever that one lies down. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/completion.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_sleeper),
                                        cmocka_unit_test(test_words) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
