/* ctest: timeout=60 */
/* Seeds are part of the contract: a program that notes (base, rank) can be repeated for ever. So
 * the values are computed here a second time, by splitmix64 as its authors published it: a state
 * that steps by the golden ratio, and the mix of that state. */
#include "order/order.h"
#include "support/ranks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static uint64_t splitmix64(uint64_t *state)
{
    *state = *state + 0x9e3779b97f4a7c15ull;
    uint64_t z = *state;
    z ^= z >> 30;
    z *= 0xbf58476d1ce4e5b9ull;
    z ^= z >> 27;
    z *= 0x94d049bb133111ebull;
    return z ^ z >> 31;
}

static uint64_t expected_seed(uint64_t base, uint64_t rank)
{
    uint64_t state = base;
    uint64_t of_both = splitmix64(&state) + rank;
    return splitmix64(&of_both);
}

static void test_reference(void **state)
{
    uint64_t zero = 0;
    (void)state;
    /* The first two of splitmix64 from 0, as every published implementation gives them: the
     * reference itself is right. */
    assert_true(splitmix64(&zero) == 0xe220a8397b1dcdafull);
    assert_true(splitmix64(&zero) == 0x6e789e6aa1b965f4ull);
}

static void test_values(void **state)
{
    static const uint64_t bases[] = { 0, 1, 42, 0x7fffffff, 0x8000000000000000ull, UINT64_MAX };
    (void)state;
    for (size_t i = 0; i < sizeof bases / sizeof bases[0]; i++)
        for (uint64_t r = 0; r < 1024; r++)
            assert_true(order_seed(bases[i], r) == expected_seed(bases[i], r));
}

static int by_value(const void *left, const void *right)
{
    const uint64_t *a = left, *b = right;
    return *a < *b ? -1 : *a > *b;
}

static void test_distinct(void **state)
{
    enum { BASES = 64, RANKS = 256 };
    static uint64_t all[BASES * RANKS];
    (void)state;
    /* Neighbouring bases with neighbouring ranks are where base + rank or base * size + rank
     * would meet. */
    for (uint64_t b = 0; b < BASES; b++)
        for (uint64_t r = 0; r < RANKS; r++)
            all[b * RANKS + r] = order_seed(b, r);
    qsort(all, BASES * RANKS, sizeof all[0], by_value);
    for (size_t i = 1; i < BASES * RANKS; i++)
        assert_true(all[i] != all[i - 1]);
}

static int body_ranks(tutti_comm *world, int rank)
{
    CHECK(tutti_seed(7, world) == expected_seed(7, (uint64_t)rank));
    CHECK(tutti_seed_at("here", 8, world) == expected_seed(8, (uint64_t)rank));
    CHECK((tutti_seed)(7, world) == expected_seed(7, (uint64_t)rank));
    tutti_comm *turned;
    CHECK_IS(tutti_comm_split(world, 0, -rank, &turned), 0);
    CHECK(tutti_seed(7, turned) == expected_seed(7, (uint64_t)tutti_rank(turned)));
    CHECK_IS(tutti_comm_abort(turned, "on purpose"), 0);
    CHECK(tutti_seed(7, turned) == expected_seed(7, (uint64_t)tutti_rank(turned)));
    CHECK_IS(tutti_comm_free(turned), 0);
    return 0;
}

static void test_ranks(void **state)
{
    (void)state;
    assert_int_equal(ranks_run(3, body_ranks, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reference),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_distinct),
        cmocka_unit_test(test_ranks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
