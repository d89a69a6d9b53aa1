/* ctest: needs=populate */
/* Where slots lie: as much as is asked for, never over the slot of the operation before; large ones
 * one behind the other in a ring. And its pages: no more of them than are needed or have been
 * earned, none but those that the books know of. */
#include "group/comm.h"
#include "os/cpu.h"
#include "support/pages.h"
#include "support/ranks.h"
#include "support/skip.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { LARGE = EAGER_TURNS + 72, MANY = 32 * EAGER_MOST / EAGER_TURNS };

static bool in_ring(const struct stage *s, const char *slot, size_t bytes)
{
    return s->ring && slot >= s->ring && slot + bytes <= s->ring + s->ring_bytes;
}

static bool inside(const tutti_comm *c, uint64_t seq, const char *slot, size_t bytes)
{
    const struct stage *s = &c->stage;
    return in_ring(s, slot, bytes)
        || (slot >= s->eager[seq & 1]
            && slot + bytes <= s->eager[seq & 1] + s->eager_bytes[seq & 1]);
}

enum { CHEAP = 1 << 24 };                       /* ticks a KiB that a larger block would spare */

static bool apart(const char *a, size_t of_a, const char *b, size_t of_b)
{
    return a + of_a <= b || b + of_b <= a;
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

/* Of all sizes that go into the ring, with small ones between: over nothing of the operation
   before. It begins anew only at the ring's end, whatever the parity. */
static int body_turns(tutti_comm *world, int rank)
{
    static const size_t sizes[] = { LARGE, EAGER_LARGEST, EAGER_TURNS, 100, EAGER_LARGEST, 70000,
                                    EAGER_LARGEST, EAGER_LARGEST, 20000 };
    const struct stage *s = &world->stage;
    char *slot = NULL, *last = NULL;
    size_t before = 0;
    int anew = 0, large = 0;
    (void)rank;
    world->world->staged_less = CHEAP;
    for (uint64_t seq = 0; seq < MANY; seq++) {
        size_t bytes = sizes[seq / 3 % (sizeof sizes / sizeof sizes[0])];
        CHECK_IS(comm_eager_slot(world, seq, bytes, &slot), 0);
        CHECK(inside(world, seq, slot, bytes));
        CHECK((uintptr_t)slot % 64 == 0);
        CHECK(!last || apart(last, before, slot, bytes));
        CHECK(bytes < EAGER_TURNS || s->ring_bytes < EAGER_ENOUGH || in_ring(s, slot, bytes));
        memset(slot, (int)seq, bytes);
        last = slot;
        before = bytes;
    }
    CHECK_IS(s->ring_bytes, comm_ring_room(cpu_cache_bytes(2)));
    for (uint64_t seq = 0; seq < MANY; seq += 2) {
        CHECK_IS(comm_eager_slot(world, seq, LARGE, &slot), 0);
        anew += slot == s->ring;
        large++;
    }
    int round = (int)(s->ring_room / layout_round(LARGE, 64));
    CHECK(anew >= large / (round + 1) && anew <= large / round + 1);
    return 0;
}

/* What is not used at the end of a slot is the next one's; that of the operation before stays. */
static int body_used(tutti_comm *world, int rank)
{
    const struct stage *s = &world->stage;
    char *slot, *last = NULL;
    (void)rank;
    world->world->staged_less = CHEAP;
    for (uint64_t seq = 0; seq < MANY; seq++) {
        CHECK_IS(comm_stage_eager(world, seq, EAGER_LARGEST, LARGE, false, &slot), 0);
        CHECK(inside(world, seq, slot, EAGER_LARGEST));
        CHECK(!last || !in_ring(s, last, LARGE) || slot == s->ring
              || slot == last + layout_round(LARGE, 64));
        last = slot;
    }
    return 0;
}

/* One that may be written again soon is so after a few slots, but never over the one before. */
static int body_soon(tutti_comm *world, int rank)
{
    static const size_t sizes[] = { EAGER_LARGEST, LARGE, EAGER_TURNS, 70000 };
    const struct stage *s = &world->stage;
    size_t of_last = 0, most = 0;
    uint64_t x = 7;
    char *slot, *last = NULL;
    (void)rank;
    world->world->staged_less = CHEAP;
    for (uint64_t seq = 0; seq < MANY; seq++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        size_t bytes = seq < MANY / 2 ? sizes[x >> 60 & 3] : LARGE;
        bool soon = seq >= MANY / 2 || x >> 40 & 1;
        CHECK_IS(comm_stage_eager(world, seq, bytes, bytes, soon, &slot), 0);
        CHECK(inside(world, seq, slot, bytes));
        CHECK(!last || apart(last, of_last, slot, bytes));
        last = slot;
        of_last = bytes;
        size_t end = (size_t)(slot + bytes - s->ring);
        if (seq > MANY / 2 + EAGER_MOST / LARGE)
            most = most > end ? most : end;
    }
    CHECK(most > LARGE && most <= 8 * LARGE);
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
    CHECK(!in_ring(&world->stage, slot, 100));
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
    for (int i = 0; i < 2; i++)
        CHECK_IS(s->eager_bytes[i], layout_round(LARGE, 4096));
    CHECK(s->ring == NULL);
    return 0;
}

/* The ring comes chunk by chunk, one an operation at most, and is gone to when half of it is there:
   blocks that are larger than a small slot then go. After the other half nothing comes any more. */
static int body_steps(tutti_comm *world, int rank)
{
    const struct stage *s = &world->stage;
    size_t ring = 0;
    int chunks = 0;
    char *slot;
    (void)rank;
    world->world->staged_less = CHEAP;
    for (uint64_t seq = 0; seq < MANY; seq++) {
        CHECK_IS(comm_eager_slot(world, seq, LARGE, &slot), 0);
        CHECK(inside(world, seq, slot, LARGE));
        CHECK(s->ring_bytes == ring || s->ring_bytes == ring + EAGER_CHUNK);
        chunks += s->ring_bytes > ring;
        ring = s->ring_bytes;
        CHECK(!s->ring || pages_there(s->ring, EAGER_MOST) == ring);
        CHECK(in_ring(s, slot, LARGE) == (ring >= EAGER_ENOUGH));
        CHECK_IS(s->eager_bytes[seq & 1], ring >= EAGER_ENOUGH ? 0 : layout_round(LARGE, 4096));
        CHECK((s->eager[seq & 1] == NULL) == (ring >= EAGER_ENOUGH));
    }
    CHECK_IS(chunks, s->ring_room / EAGER_CHUNK);
    uint64_t spent = s->fresh.spent;
    for (uint64_t seq = MANY; seq < 2 * MANY; seq++) {
        CHECK_IS(comm_eager_slot(world, seq, LARGE, &slot), 0);
        CHECK_IS(comm_eager_slot(world, seq + 1, 100, &slot), 0);
        CHECK_IS(s->eager_room[(seq + 1) & 1], 4096);
    }
    CHECK(s->fresh.spent == spent);
    return 0;
}

/* Asked for whole: with the first slot of a chunk, of which nothing is earned, and no page comes
   later. */
static int body_ahead(tutti_comm *world, void *arg)
{
    const struct stage *s = &world->stage;
    char *slot;
    (void)arg;
    world->world->staged_less = 0;
    CHECK_IS(comm_eager_slot(world, 0, LARGE, &slot), 0);
    CHECK(s->ring == NULL);
    CHECK_IS(comm_eager_slot(world, 1, EAGER_CHUNK, &slot), 0);
    CHECK_IS(s->ring_bytes, s->ring_room);
    CHECK(in_ring(s, slot, EAGER_CHUNK));
    CHECK(!pages_single() || pages_there(s->ring, EAGER_MOST) == s->ring_room);
    CHECK_IS(s->fresh.spent, 0);
    for (uint64_t seq = 2; seq < MANY; seq++) {
        CHECK_IS(comm_eager_slot(world, seq, LARGE, &slot), 0);
        CHECK(in_ring(s, slot, LARGE));
    }
    return 0;
}

/* So many comms have it whole at a time, and one that comes later when one of them has gone. */
static int body_ahead_most(tutti_comm *world, void *arg)
{
    tutti_comm *comms[AHEAD_MOST + 1];
    char *slot;
    (void)arg;
    for (int i = 0; i <= AHEAD_MOST; i++) {
        CHECK_IS(tutti_comm_split(world, 0, 0, &comms[i]), 0);
        comms[i]->world->staged_less = 0;
        CHECK_IS(comm_eager_slot(comms[i], 1, EAGER_CHUNK, &slot), 0);
        CHECK_IS(comms[i]->stage.ring_bytes, comms[i]->stage.ring_room);
        CHECK((comms[i]->stage.ring_bytes != 0) == (i < AHEAD_MOST));
    }
    CHECK_IS(tutti_comm_free(comms[0]), 0);
    CHECK_IS(tutti_comm_split(world, 0, 0, &comms[0]), 0);
    CHECK_IS(comm_eager_slot(comms[0], 1, EAGER_CHUNK, &slot), 0);
    CHECK(comms[0]->stage.ring_bytes && comm_ring_whole(&comms[0]->stage));
    for (int i = 0; i <= AHEAD_MOST; i++)
        CHECK_IS(tutti_comm_free(comms[i]), 0);
    return 0;
}

/* No room for it: all goes on as it was, and it is not asked for every time. */
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
    size_t bytes = world->world->flags & TUTTI_AHEAD ? EAGER_CHUNK : LARGE;
    CHECK_IS(comm_eager_slot(world, 2, bytes, &slot), 0);
    CHECK(inside(world, 2, slot, bytes));
    CHECK(s->ring == NULL);
    CHECK(!fresh_may(&s->fresh, 1));
    while (n > 0)
        tutti_free(all[--n], world);
    CHECK_IS(comm_eager_slot(world, 4, 2 * LARGE, &slot), 0);
    CHECK_IS(comm_eager_slot(world, 6, 2 * LARGE, &slot), 0);
    CHECK(s->ring != NULL);
    CHECK_IS(comm_eager_slot(world, 8, 2 * EAGER_MOST, &slot), 0);
    CHECK(inside(world, 8, slot, 2 * EAGER_MOST));
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

static void test_used(void **state)
{
    (void)state;
    assert_int_equal(ranks_run(1, body_used, 0), 0);
}

/* Twice the second-level cache, in whole chunks, from where it is used up to where it begins again.
 * The ring of this machine is so. */
static void test_room(void **state)
{
    (void)state;
    static const struct { size_t second, room; } of[] = {
        { 0, EAGER_MOST }, { 1, EAGER_ENOUGH }, { 256 << 10, EAGER_ENOUGH },
        { 512 << 10, EAGER_ENOUGH }, { 640 << 10, 1280 << 10 }, { 700000, 85 * EAGER_CHUNK },
        { 1 << 20, EAGER_MOST }, { 1280 << 10, EAGER_MOST }, { SIZE_MAX, EAGER_MOST }
    };
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        assert_int_equal(comm_ring_room(of[i].second), of[i].room);
}

static void test_soon(void **state)
{
    (void)state;
    assert_int_equal(ranks_run(1, body_soon, 0), 0);
}

static void test_more(void **state)
{
    (void)state;
    /* the sanitizers' runs have small spans */
    setenv("TUTTI_SPAN_BYTES", "256M", 1);
    assert_int_equal(ranks_run(1, body_more, 0), 0);
    unsetenv("TUTTI_SPAN_BYTES");
}

static void test_first(void **state)
{
    (void)state;
    if (!pages_single())
        skip_because("this machine tells nothing of single pages");
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
        skip_because("this machine tells nothing of single pages");
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

static void test_ahead(void **state)
{
    const tutti_options ahead = { .flags = TUTTI_AHEAD };
    (void)state;
    assert_int_equal(tutti_spawn(1, body_ahead, NULL, &ahead, NULL), 0);
}

static void test_ahead_most(void **state)
{
    const tutti_options ahead = { .flags = TUTTI_AHEAD };
    (void)state;
    assert_int_equal(tutti_spawn(1, body_ahead_most, NULL, &ahead, NULL), 0);
}

static void test_ahead_refused(void **state)
{
    const tutti_options small = { .span_bytes = 16 << 20, .flags = TUTTI_AHEAD };
    (void)state;
    assert_int_equal(tutti_spawn(1, small_body, NULL, &small, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small),
        cmocka_unit_test(test_turns),
        cmocka_unit_test(test_used),
        cmocka_unit_test(test_room),
        cmocka_unit_test(test_soon),
        cmocka_unit_test(test_more),
        cmocka_unit_test(test_first),
        cmocka_unit_test(test_dear),
        cmocka_unit_test(test_steps),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_ahead),
        cmocka_unit_test(test_ahead_most),
        cmocka_unit_test(test_ahead_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
