/* When pages have been earned, when told what each costs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/fresh.h"

enum { PRICE = 1000, PAGES = 4, EARNED = 100 };

static void pay(struct fresh *f, uint64_t ticks, size_t pages)
{
    fresh_learn(f, ticks, pages);
    fresh_pay(f, pages);
}

/* How many pages were bought in so many operations. */
static size_t bought(struct fresh *f, int operations, uint64_t price)
{
    size_t pages = 0;
    for (int i = 0; i < operations; i++) {
        fresh_earn(f, EARNED);
        if (fresh_may(f, PAGES)) {
            pay(f, price * PAGES, PAGES);
            pages += PAGES;
        }
    }
    return pages;
}

static void test_unknown(void **state)
{
    struct fresh f = { 0, 0, 0 };
    (void)state;
    assert_int_equal(bought(&f, 1000, PRICE), 0);
    fresh_learn(&f, PAGES * PRICE, PAGES);
    assert_int_equal(f.spent, 0);                    /* what is needed is not bought */
    assert_true(bought(&f, 1, PRICE) > 0);
}

/* Never more than has been earned; and all of it. */
static void test_balance(void **state)
{
    (void)state;
    for (uint64_t price = 1; price <= 100 * PRICE; price *= 10) {
        struct fresh f = { 0, 0, 0 };
        fresh_learn(&f, price * PAGES, PAGES);
        size_t pages = bought(&f, 100000, price), earned = 100000 * EARNED / (price + 1),
               most = 100000 * PAGES;
        assert_true(pages <= earned || price == 1);
        assert_true(pages + PAGES >= (earned < most ? earned : most));
    }
}

/* A price that rises is believed by and by, one that falls at once. */
static void test_held_up(void **state)
{
    struct fresh f = { 0, 0, 0 };
    (void)state;
    fresh_learn(&f, PAGES * PRICE, PAGES);
    uint64_t before = f.page;
    pay(&f, (uint64_t)PAGES * PRICE * 1000000, PAGES);
    assert_int_equal(f.page, 2 * before);
    assert_int_equal(f.spent, 2 * before * PAGES);
    pay(&f, PAGES * PRICE, PAGES);
    assert_int_equal(f.page, before);
    for (int i = 0; i < 20; i++)
        fresh_learn(&f, (uint64_t)PAGES * PRICE * 1000, PAGES);
    assert_int_equal(f.page, PRICE * 1000 + 1);
}

static void test_refused(void **state)
{
    struct fresh f = { 0, 0, 0 };
    (void)state;
    fresh_learn(&f, PAGES * PRICE, PAGES);
    fresh_earn(&f, (uint64_t)100 * PAGES * PRICE);
    assert_true(fresh_may(&f, PAGES));
    fresh_refused(&f, 10 * PAGES);
    assert_false(fresh_may(&f, 1));
    fresh_earn(&f, 11 * PAGES * f.page);
    assert_true(fresh_may(&f, PAGES));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_balance),
        cmocka_unit_test(test_held_up),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
