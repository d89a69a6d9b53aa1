/* The line through two points, by numbers that a person can check, and the real counter within what
 * two reads bracket. */
#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* two ticks a nanosecond */
static const struct clock_point then = { 1000, 500000 }, now = { 3000, 501000 };

static void test_ticks_lie_on_the_line(void **state)
{
    (void)state;
    assert_int_equal(clock_tick_ns(1000, then, now), 500000);
    assert_int_equal(clock_tick_ns(2000, then, now), 500500);
    assert_int_equal(clock_tick_ns(3000, then, now), 501000);
    assert_int_equal(clock_tick_ns(5000, then, now), 502000);
}

static void test_before_the_first_point_is_the_first_point(void **state)
{
    (void)state;
    assert_int_equal(clock_tick_ns(999, then, now), 500000);
    assert_int_equal(clock_tick_ns(0, then, now), 500000);
}

static void test_no_line_through_one_point(void **state)
{
    (void)state;
    assert_int_equal(clock_tick_ns(4000, then, then), 500000);
    assert_int_equal(clock_tick_ns(4000, now, then), 501000);
}

static void test_a_year_does_not_overflow(void **state)
{
    (void)state;
    uint64_t year = 365ull * 86400 * 1000000000;
    struct clock_point end = { 1000 + 3 * year, 500000 + year };
    assert_true(clock_tick_ns(1000 + 3 * year / 2, then, end) == 500000 + year / 2);
    struct clock_point steep = { 1001, UINT64_MAX };
    assert_true(clock_tick_ns(UINT64_MAX, then, steep) == UINT64_MAX);
}

static void test_a_rate_is_one_that_processors_have(void **state)
{
    (void)state;
    const struct clock_point stood = { 1000, 900000 }, back = { 999, 900000 },
                             slow = { 1001, 900000000 };
    const struct clock_point jumped = { 1000 + (UINT64_C(1) << 62), 500001 },
                             year = { UINT64_MAX, UINT64_MAX };
    assert_true(clock_rate(then, now) == 2);
    assert_true(clock_rate(then, then) == 1);
    assert_true(clock_rate(then, stood) == 1);
    assert_true(clock_rate(then, back) == 1);
    assert_true(clock_rate(now, then) == 1);
    assert_true(clock_rate(then, slow) == 0.01);
    assert_true(clock_rate(then, jumped) == 10);
    assert_true(clock_rate(then, year) > 0.9 && clock_rate(then, year) < 1.1);
}

static void test_a_point_lies_between_its_neighbours(void **state)
{
    (void)state;
    for (int i = 0; i < 1000; i++) {
        uint64_t ns = clock_ns(), tick = clock_tick();
        struct clock_point point = clock_now();
        assert_true(point.tick >= tick && clock_tick() >= point.tick);
        assert_true(point.ns >= ns && clock_ns() >= point.ns);
    }
}

/* However long the two points are apart, a tick taken between two reads of the clock must be placed
 * near them: the points themselves are exact to the width of their own brackets, so the test allows
 * the widest that it saw. */
static void test_real_ticks_become_real_times(void **state)
{
    (void)state;
    uint64_t first = clock_ns();
    struct clock_point begin = clock_now();
    uint64_t slack = clock_ns() - first;
    uint64_t before = clock_ns(), tick = clock_tick(), after = clock_ns();
    while (clock_ns() - first < 20000000)
        ;
    uint64_t last = clock_ns();
    struct clock_point end = clock_now();
    slack += clock_ns() - last;
    uint64_t at = clock_tick_ns(tick, begin, end);
    assert_true(at + slack >= before && at <= after + slack);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ticks_lie_on_the_line),
        cmocka_unit_test(test_a_rate_is_one_that_processors_have),
        cmocka_unit_test(test_before_the_first_point_is_the_first_point),
        cmocka_unit_test(test_no_line_through_one_point),
        cmocka_unit_test(test_a_year_does_not_overflow),
        cmocka_unit_test(test_a_point_lies_between_its_neighbours),
        cmocka_unit_test(test_real_ticks_become_real_times),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
