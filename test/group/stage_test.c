/* Where slots lie: as much as is asked for, of one parity never in the other's block; large ones take turns in a block that grows while it is busy. */
#include "group/comm.h"
#include "support/ranks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { LARGE = FLAT_TURNS + 72, MANY = 64 * FLAT_MOST / FLAT_TURNS };

static bool inside(const tutti_comm *c, uint64_t seq, const char *slot, size_t bytes)
{
    const struct stage *s = &c->stage;
    return slot >= s->flat[seq & 1] && slot + bytes <= s->flat[seq & 1] + s->flat_bytes[seq & 1];
}

static bool apart(const struct stage *s)
{
    return s->flat[0] + s->flat_bytes[0] <= s->flat[1] || s->flat[1] + s->flat_bytes[1] <= s->flat[0];
}

/* Small ones stay where they are: their line is asked for before it is known where the next one begins. */
static int body_small(tutti_comm *world, int rank)
{
    char *slot, *first = NULL;
    (void)rank;
    for (uint64_t seq = 0; seq < MANY; seq += 2) {
        CHECK_IS(comm_flat_slot(world, seq, FLAT_TURNS / 2, &slot), 0);
        CHECK(inside(world, seq, slot, FLAT_TURNS / 2));
        CHECK(!first || slot == first);
        first = slot;
    }
    return 0;
}

static int body_turns(tutti_comm *world, int rank)
{
    char *slot = NULL, *last[2] = { NULL, NULL };
    size_t bytes[2] = { 0, 0 };
    int same = 0;
    (void)rank;
    for (uint64_t seq = 0; seq < MANY; seq++) {
        CHECK_IS(comm_flat_slot(world, seq, LARGE, &slot), 0);
        CHECK(inside(world, seq, slot, LARGE));
        CHECK((uintptr_t)slot % 64 == 0);
        bool stayed = bytes[seq & 1] == world->stage.flat_bytes[seq & 1];
        if (last[seq & 1] && stayed && bytes[seq & 1] >= 2 * LARGE) {
            CHECK(slot >= last[seq & 1] + LARGE || slot + LARGE <= last[seq & 1]);
            same += slot == world->stage.flat[seq & 1];
        }
        last[seq & 1] = slot;
        bytes[seq & 1] = world->stage.flat_bytes[seq & 1];
        memset(slot, (int)seq, LARGE);
    }
    CHECK(apart(&world->stage));
    CHECK_IS(bytes[0], FLAT_MOST);
    CHECK_IS(bytes[1], FLAT_MOST);
    CHECK(same < MANY / 8);                          /* it begins anew only at the block's end */
    return 0;
}

/* One that needs more gets more; small ones then have their place at the block's beginning. */
static int body_more(tutti_comm *world, int rank)
{
    char *slot;
    (void)rank;
    CHECK_IS(comm_flat_slot(world, 3, LARGE, &slot), 0);
    CHECK_IS(comm_flat_slot(world, 5, 3 * FLAT_MOST, &slot), 0);
    CHECK(inside(world, 5, slot, 3 * FLAT_MOST));
    memset(slot, 1, 3 * FLAT_MOST);
    CHECK_IS(comm_flat_slot(world, 7, 2 * FLAT_MOST, &slot), 0);
    CHECK(inside(world, 7, slot, 2 * FLAT_MOST));
    CHECK_IS(comm_flat_slot(world, 9, 100, &slot), 0);
    CHECK(slot == world->stage.flat[1]);
    CHECK(world->stage.flat[0] == NULL);
    return 0;
}

static void test_small(void **state)
{
    (void)state;
    assert_int_equal(ranks_run(1, body_small, 0), 0);
}

static void test_turns(void **state)
{
    (void)state;
    assert_int_equal(ranks_run(1, body_turns, 0), 0);
}

static void test_more(void **state)
{
    (void)state;
    assert_int_equal(ranks_run(1, body_more, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small),
        cmocka_unit_test(test_turns),
        cmocka_unit_test(test_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
