/* Where slots lie: as much as is asked for, of one parity never in the other's block; large ones
 * take turns in a block. And its pages: no more of them than are needed or have been earned, none
 * but those that the books know of. */
#include "group/comm.h"
#include "support/pages.h"
#include "support/ranks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { LARGE = EAGER_TURNS + 72, MANY = 64 * EAGER_MOST / EAGER_TURNS };

static bool inside(const tutti_comm *c, uint64_t seq, const char *slot, size_t bytes)
{
    const struct stage *s = &c->stage;
    return slot >= s->eager[seq & 1] && slot + bytes <= s->eager[seq & 1] + s->eager_bytes[seq & 1];
}

enum { CHEAP = 1 << 24 };                       /* ticks a KiB that a larger block would spare */

static bool apart(const struct stage *s)
{
    return s->eager[0] + s->eager_bytes[0] <= s->eager[1]
        || s->eager[1] + s->eager_bytes[1] <= s->eager[0];
}

/* Small ones stay where they are: their line is asked for before it is known where the next
 * one begins. */
static int body_small(tutti_comm *world, int rank)
{
    char *slot, *first = NULL;
    (void)rank;
    for (uint64_t seq = 0; seq < MANY; seq += 2) {
        CHECK_IS(comm_eager_slot(world, seq, EAGER_TURNS / 2, &slot), 0);
        CHECK(inside(world, seq, slot, EAGER_TURNS / 2));
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
    world->world->staged_less = CHEAP;
    for (uint64_t seq = 0; seq < MANY; seq++) {
        CHECK_IS(comm_eager_slot(world, seq, LARGE, &slot), 0);
        CHECK(inside(world, seq, slot, LARGE));
        CHECK((uintptr_t)slot % 64 == 0);
        bool stayed = bytes[seq & 1] == world->stage.eager_bytes[seq & 1];
        if (last[seq & 1] && stayed && bytes[seq & 1] >= 2 * LARGE) {
            CHECK(slot >= last[seq & 1] + LARGE || slot + LARGE <= last[seq & 1]);
            same += slot == world->stage.eager[seq & 1];
        }
        last[seq & 1] = slot;
        bytes[seq & 1] = world->stage.eager_bytes[seq & 1];
        memset(slot, (int)seq, LARGE);
    }
    CHECK(apart(&world->stage));
    CHECK_IS(bytes[0], EAGER_MOST);
    CHECK_IS(bytes[1], EAGER_MOST);
    CHECK(same < MANY / 8);                          /* it begins anew only at the block's end */
    return 0;
}

/* One that needs more gets more; small ones then have their place at the block's beginning. */
static int body_more(tutti_comm *world, int rank)
{
    char *slot;
    (void)rank;
    CHECK_IS(comm_eager_slot(world, 3, LARGE, &slot), 0);
    CHECK_IS(comm_eager_slot(world, 5, 3 * EAGER_MOST, &slot), 0);
    CHECK(inside(world, 5, slot, 3 * EAGER_MOST));
    memset(slot, 1, 3 * EAGER_MOST);
    CHECK_IS(comm_eager_slot(world, 7, 2 * EAGER_MOST, &slot), 0);
    CHECK(inside(world, 7, slot, 2 * EAGER_MOST));
    CHECK_IS(comm_eager_slot(world, 9, 100, &slot), 0);
    CHECK(slot == world->stage.eager[1]);
    CHECK(world->stage.eager[0] == NULL);
    return 0;
}

/* No page more than an operation needs; one that needs more gets it behind what is there, as long
 * as there is room. */
static int body_first(tutti_comm *world, int rank)
{
    const struct stage *s = &world->stage;
    char *slot, *block;
    (void)rank;
    world->world->staged_less = 0;
    CHECK_IS(comm_eager_slot(world, 2, 20000, &slot), 0);
    block = s->eager[0];
    CHECK_IS(pages_there(block, s->eager_room[0]), 20480);
    CHECK_IS(comm_eager_slot(world, 4, 40000, &slot), 0);
    CHECK(s->eager[0] == block);
    CHECK_IS(pages_there(block, s->eager_room[0]), 40960);
    CHECK_IS(s->eager_bytes[0], 40960);
    CHECK_IS(comm_eager_slot(world, 6, 70000, &slot), 0);
    CHECK_IS(pages_there(s->eager[0], s->eager_room[0]), 73728);
    CHECK(inside(world, 6, slot, 70000));
    return 0;
}

/* Where pages are dear, a comm goes round in what it has. */
static int body_dear(tutti_comm *world, int rank)
{
    const struct stage *s = &world->stage;
    char *slot;
    (void)rank;
    world->world->staged_less = 0;
    for (uint64_t seq = 0; seq < MANY; seq++)
        CHECK_IS(comm_eager_slot(world, seq, LARGE, &slot), 0);
    for (int i = 0; i < 2; i++) {
        CHECK_IS(s->eager_bytes[i], layout_round(LARGE, 4096));
        CHECK(s->next[i] == NULL);
    }
    return 0;
}

/* The larger block comes chunk by chunk, one an operation at most, and is gone to when half of it
   is there; after the other half nothing comes any more. */
static int body_steps(tutti_comm *world, int rank)
{
    const struct stage *s = &world->stage;
    size_t least = layout_round(LARGE, 4096), next[2] = { 0, 0 }, eager[2] = { least, least };
    int chunks = 0;
    char *slot;
    (void)rank;
    world->world->staged_less = CHEAP;
    for (uint64_t seq = 0; seq < MANY; seq++) {
        int i = seq & 1;
        CHECK_IS(comm_eager_slot(world, seq, LARGE, &slot), 0);
        CHECK(inside(world, seq, slot, LARGE));
        if (s->next[i]) {
            CHECK_IS(s->next_bytes[i] - next[i], EAGER_CHUNK);
            CHECK_IS(pages_there(s->next[i], EAGER_MOST), s->next_bytes[i]);
            CHECK_IS(s->eager_bytes[i], least);
        } else if (next[i])
            CHECK_IS(s->eager_bytes[i], EAGER_ENOUGH);
        else if (eager[i] >= EAGER_ENOUGH && eager[i] < EAGER_MOST)
            CHECK_IS(s->eager_bytes[i] - eager[i], EAGER_CHUNK);
        CHECK_IS(pages_there(s->eager[i], s->eager_room[i]), s->eager_bytes[i]);
        chunks += s->next_bytes[i] > next[i] || s->eager_bytes[i] > eager[i];
        next[i] = s->next_bytes[i];
        eager[i] = s->eager_bytes[i];
    }
    CHECK_IS(chunks, 2 * (EAGER_MOST / EAGER_CHUNK));
    CHECK_IS(eager[0], EAGER_MOST);
    CHECK_IS(eager[1], EAGER_MOST);
    uint64_t spent = s->fresh.spent;
    for (uint64_t seq = MANY; seq < 2 * MANY; seq++)
        CHECK_IS(comm_eager_slot(world, seq, LARGE, &slot), 0);
    CHECK(s->fresh.spent == spent);
    return 0;
}

/* No room for it: all goes on as it was, and it is not asked for every time. What was begun is
 * given back when a larger slot makes it needless. */
static int body_refused(tutti_comm *world, int rank)
{
    enum { PIECES = 4096 };
    static void *all[PIECES];
    const struct stage *s = &world->stage;
    int n = 0;
    char *slot;
    (void)rank;
    CHECK_IS(comm_eager_slot(world, 0, LARGE, &slot), 0);
    CHECK_IS(comm_eager_slot(world, 1, LARGE, &slot), 0);
    while (n < PIECES && (all[n] = tutti_alloc(EAGER_MOST / 2, world)) != NULL)
        n++;
    CHECK(n > 0 && n < PIECES);
    world->world->staged_less = CHEAP;
    CHECK_IS(comm_eager_slot(world, 2, LARGE, &slot), 0);
    CHECK(inside(world, 2, slot, LARGE));
    CHECK(s->next[0] == NULL);
    CHECK(!fresh_may(&s->fresh, 1));
    while (n > 0)
        tutti_free(all[--n], world);
    CHECK_IS(comm_eager_slot(world, 4, 2 * LARGE, &slot), 0);
    CHECK_IS(comm_eager_slot(world, 6, 2 * LARGE, &slot), 0);
    CHECK(s->next[0] != NULL);
    CHECK_IS(comm_eager_slot(world, 8, 2 * EAGER_MOST, &slot), 0);
    CHECK(s->next[0] == NULL);
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

static void test_first(void **state)
{
    (void)state;
    if (!pages_single())
        skip();                                      /* nothing can be said of single pages here */
    assert_int_equal(ranks_run(1, body_first, 0), 0);
}

static void test_dear(void **state)
{
    (void)state;
    assert_int_equal(ranks_run(1, body_dear, 0), 0);
}

static void test_steps(void **state)
{
    (void)state;
    if (!pages_single())
        skip();                                      /* nothing can be said of single pages here */
    assert_int_equal(ranks_run(1, body_steps, 0), 0);
}

static int small_body(tutti_comm *world, void *arg)
{
    (void)arg;
    return body_refused(world, 0);
}

static void test_refused(void **state)
{
    const tutti_options small = { .span_bytes = 16 << 20 };
    (void)state;
    assert_int_equal(tutti_spawn(1, small_body, NULL, &small, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small),
        cmocka_unit_test(test_turns),
        cmocka_unit_test(test_more),
        cmocka_unit_test(test_first),
        cmocka_unit_test(test_dear),
        cmocka_unit_test(test_steps),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
