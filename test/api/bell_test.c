/* The end of a handle reaches who sleeps for it, whenever that one lies down. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "api/bell.h"

#include <pthread.h>
#include <sched.h>

enum { ROUNDS = 200 };
static const uint64_t HOURS = UINT64_C(7200000000000);

static void *sleep_for(void *arg)
{
    struct bell *bell = arg;
    while (!bell_over(bell))
        bell_sleep(bell, HOURS);
    return NULL;
}

/* Who lies down at any moment of the ringing gets up. Without the wake, or with one that comes before the word, this never ends. */
static void test_sleeper(void **state)
{
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        struct bell bell = { 0 };
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, sleep_for, &bell), 0);
        while (i % 2 && load_acquire32(&bell.over) != BELL_HEARD)
            sched_yield();
        bell_ring(&bell);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_true(bell_over(&bell));
    }
}

/* What is over is no reason to sleep, and being heard does not make it over. */
static void test_words(void **state)
{
    (void)state;
    struct bell bell = { 0 }, other = { 0 };
    assert_false(bell_over(&bell));
    assert_true(bell_heard(&bell));
    assert_false(bell_over(&bell));
    assert_true(bell_heard(&bell));
    bell_ring(&bell);
    assert_true(bell_over(&bell));
    assert_false(bell_heard(&bell));
    bell_ring(&other);
    bell_sleep(&other, HOURS);
    assert_true(bell_over(&other));
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_sleeper), cmocka_unit_test(test_words) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
