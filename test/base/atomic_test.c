/* ctest: labels=tsan */
/* The words do what their names say, and the full fence is one: two ranks that each store and then
 * look can never both have looked too early. (Without the fence, x86 gets this wrong some 30 times
 * in a million on two cores.) */
#include "base/atomic.h"
#include "base/clock.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* As many rounds, or as go into this time: on a CPU that others want, or the only one, each meeting
 * may cost a turn of all others. */
enum { ROUNDS = 100000 };
static const uint64_t LONGEST_NS = UINT64_C(10000000000);

static void test_read_modify_writes_return_what_was_there(void **state)
{
    (void)state;
    shared32 w = 5;
    assert_int_equal(fetch_add32(&w, 3), 5);
    assert_int_equal(fetch_sub32(&w, 2), 8);
    assert_int_equal(fetch_or32(&w, 9), 6);
    assert_int_equal(fetch_and32(&w, 3), 15);
    assert_int_equal(load_acquire32(&w), 3);
    shared64 x = UINT64_MAX;
    assert_true(fetch_add64(&x, 2) == UINT64_MAX);
    assert_int_equal(load_acquire64(&x), 1);
}

static void test_swap_if_tells_what_it_saw(void **state)
{
    (void)state;
    shared32 w = 7;
    uint32_t seen = 6;
    assert_false(swap_if32(&w, &seen, 9));
    assert_int_equal(seen, 7);
    assert_true(swap_if32(&w, &seen, 9));
    assert_int_equal(load_acquire32(&w), 9);
    shared64 x = 7;
    uint64_t seen64 = 7;
    assert_true(swap_if64(&x, &seen64, (uint64_t)1 << 40));
    assert_false(swap_if64(&x, &seen64, 0));
    assert_true(seen64 == (uint64_t)1 << 40);
}

static void test_low_half_is_the_low_half(void **state)
{
    (void)state;
    shared64 w;
    store_release64(&w, 0x1122334455667788u);
    assert_int_equal(load_acquire32(low_half(&w)), 0x55667788);
    store_fence64(&w, ((uint64_t)9 << 32) | 4);
    assert_int_equal(load_acquire32(low_half(&w)), 4);
}

struct side { _Alignas(128) shared64 word; uint64_t saw; };

static struct {
    struct side side[2];
    _Alignas(128) shared32 arrived;
    _Alignas(128) shared32 round;
    shared32 over;          /* this round was the last; side 0 says so before its second meeting */
    bool fence_apart;
} duel;

/* Both sides start a round together, which is what makes the race likely; where others want the
 * CPUs, a side lets them. */
static void meet(uint32_t round)
{
    if (fetch_add32(&duel.arrived, 1) == 2 * round + 1)
        store_release32(&duel.round, round + 1);
    for (int i = 0; load_acquire32(&duel.round) <= round; i++)
        if (i < 1000)
            cpu_pause();
        else
            sched_yield();
}

static void store_and_look(int side, uint64_t value)
{
    shared64 *mine = &duel.side[side].word, *theirs = &duel.side[!side].word;
    if (duel.fence_apart) {
        store_release64(mine, value);
        fence_full();
    } else {
        store_fence64(mine, value);
    }
    duel.side[side].saw = load_acquire64(theirs);
}

static void *opponent(void *arg)
{
    (void)arg;
    for (uint32_t i = 0; !load_acquire32(&duel.over); i++) {
        meet(2 * i);
        store_and_look(1, i + 1);
        meet(2 * i + 1);
    }
    return NULL;
}

static void fight(bool fence_apart)
{
    pthread_t thread;
    store_release32(&duel.arrived, 0);
    store_release32(&duel.round, 0);
    store_release32(&duel.over, 0);
    store_release64(&duel.side[0].word, 0);
    store_release64(&duel.side[1].word, 0);
    duel.fence_apart = fence_apart;
    assert_int_equal(pthread_create(&thread, NULL, opponent, NULL), 0);
    int missed = 0;
    uint64_t end = clock_ns() + LONGEST_NS;
    for (uint32_t i = 0; !load_acquire32(&duel.over); i++) {
        meet(2 * i);
        store_and_look(0, i + 1);
        if (i + 1 == ROUNDS || (i % 64 == 0 && clock_ns() > end))
            store_release32(&duel.over, 1);
        meet(2 * i + 1);
        missed += duel.side[0].saw != i + 1 && duel.side[1].saw != i + 1;
    }
    pthread_join(thread, NULL);
    assert_int_equal(missed, 0);
}

static void test_one_of_two_sees_the_other(void **state)
{
    (void)state;
    fight(false);
    fight(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read_modify_writes_return_what_was_there),
        cmocka_unit_test(test_swap_if_tells_what_it_saw),
        cmocka_unit_test(test_low_half_is_the_low_half),
        cmocka_unit_test(test_one_of_two_sees_the_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
