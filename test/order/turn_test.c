/* ctest: timeout=300 labels=tsan needs=robust */
/* Turns leave their trace in a shared log, one entry each: the log of n rounds is 0, 1, 2 … n
 * times over. */
#include "group/comm.h"
#include "support/ranks.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { AT = 0, HELD = 1, GO = 2 };

static int body_loops(tutti_comm *world, int rank)
{
    int rounds = ranks_many(500, 100), size = tutti_size(world);
    for (int n = 0; n < rounds; n++) {
        CHECK_IS(tutti_turn_begin(world, NULL), 0);
        /* Plain memory: one turn's end is the next one's licence. */
        uint64_t *entries = (uint64_t *)(void *)page->bytes;
        page->bytes[8 + entries[0]++] = (char)rank;
        CHECK_IS(tutti_turn_end(world), 0);
    }
    CHECK_IS(tutti_barrier(world, NULL), 0);
    for (int i = 0; i < rounds * size; i++)
        CHECK_IS(page->bytes[8 + i], i % size);
    return 0;
}

static void test_loops(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(4, body_loops), 0);
    assert_int_equal(ranks_run_either(1, body_loops), 0);
}

static int body_misuse(tutti_comm *world, int rank)
{
    tutti_work *work = (tutti_work *)(void *)&rank;
    tutti_call with_work = { .work = &work };
    CHECK_IS(tutti_turn_end(world), -EPERM);
    CHECK_IS(tutti_turn_begin(NULL, NULL), -EINVAL);
    CHECK_IS(tutti_turn_end(NULL), -EINVAL);
    CHECK_IS(tutti_turn_begin(world, &with_work), -EINVAL);
    CHECK(work == NULL);
    CHECK_IS(tutti_turn_begin(world, NULL), 0);
    CHECK_IS(tutti_turn_begin(world, NULL), -EDEADLK);
    CHECK_IS(tutti_turn_end(world), 0);
    CHECK_IS(tutti_turn_end(world), -EPERM);
    CHECK_IS(tutti_turn_begin(world, NULL), 0);              /* none of that has cost a turn */
    CHECK_IS(tutti_turn_end(world), 0);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    return 0;
}

static void test_misuse(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(3, body_misuse), 0);
}

/* Rank 0 keeps its turn until rank 1's patience has ended. That call alone fails, and counts as
   taken: rank 2 comes when rank 0 ends, and the next round is everybody's. */
static int body_deadline(tutti_comm *world, int rank)
{
    tutti_call soon = { .timeout_ms = 30 };
    if (rank == 0) {
        CHECK_IS(tutti_turn_begin(world, NULL), 0);
        ranks_say(HELD, 1);
        CHECK_IS(ranks_await(GO, 1), 0);
        page->bytes[60000] = 'x';
        CHECK_IS(tutti_turn_end(world), 0);
    } else if (rank == 1) {
        CHECK_IS(ranks_await(HELD, 1), 0);
        CHECK_IS(tutti_turn_begin(world, &soon), -ETIMEDOUT);
        CHECK_IS(tutti_turn_end(world), -EPERM);
        ranks_say(GO, 1);
    } else {
        CHECK_IS(tutti_turn_begin(world, NULL), 0);
        CHECK_IS(page->bytes[60000], 'x');
        CHECK_IS(tutti_turn_end(world), 0);
    }
    CHECK_IS(tutti_barrier(world, NULL), 0);
    return body_loops(world, rank);
}

static void test_deadline(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(3, body_deadline), 0);
}

/* Rank 1 dies in its second turn. Rank 2 behind it and rank 0 before its next one meet it, once; it
 * is the comm's failure. */
static int body_death(tutti_comm *world, int rank)
{
    CHECK_IS(tutti_turn_begin(world, NULL), 0);
    CHECK_IS(tutti_turn_end(world), 0);
    if (rank == 2) {
        CHECK_IS(tutti_turn_begin(world, NULL), -EOWNERDEAD);
        CHECK_IS(tutti_turn_begin(world, NULL), -ECANCELED);
        CHECK_IS(tutti_barrier(world, NULL), -ECANCELED);
        int who = -1;
        CHECK_IS(tutti_failed(world, &who, 1), 1);
        CHECK_IS(who, 1);
        ranks_say(GO, 1);
        return 0;
    }
    CHECK_IS(tutti_turn_begin(world, NULL), 0);
    if (rank == 1)
        ranks_die();
    CHECK_IS(tutti_turn_end(world), 0);
    CHECK_IS(tutti_turn_begin(world, NULL), -EOWNERDEAD);
    CHECK_IS(tutti_turn_end(world), -EPERM);
    CHECK_IS(tutti_turn_begin(world, NULL), -ECANCELED);
    CHECK_IS(ranks_await(GO, 1), 0);
    return 0;
}

static void test_death(void **state)
{
    (void)state;
    assert_int_equal(ranks_run(3, body_death, 1 << 1), 0);
}

/* Rank 2 dies, which only rank 0 meets, in a receive: it begins no turn any more, and rank 1 behind
 * it hears so, and of whom. */
static int body_death_elsewhere(tutti_comm *world, int rank)
{
    int x;
    tutti_call long_enough = { .timeout_ms = 30000 };
    if (rank == 2)
        ranks_die();
    if (rank == 0) {
        CHECK_IS(tutti_recv(&x, 1, TUTTI_I32, 2, 0, NULL, world, &long_enough), -EOWNERDEAD);
        CHECK_IS(tutti_turn_begin(world, NULL), -ECANCELED);
        return ranks_await(GO, 1);
    }
    CHECK_IS(tutti_turn_begin(world, &long_enough), -EOWNERDEAD);
    CHECK(strstr(tutti_explain(world), "rank 0: has met a failure of the comm") != NULL);
    CHECK(strstr(tutti_explain(world), "signal 9") != NULL);
    ranks_say(GO, 1);
    return 0;
}

static void test_death_elsewhere(void **state)
{
    (void)state;
    assert_int_equal(ranks_run(3, body_death_elsewhere, 1 << 2), 0);
}

/* Who has had its turn owes nothing any more: rank 0 leaves after it, and the round goes on. */
static int body_left_after_turn(tutti_comm *world, int rank)
{
    if (rank != 0)
        CHECK_IS(ranks_await(GO, 1), 0);
    CHECK_IS(tutti_turn_begin(world, NULL), 0);
    CHECK_IS(tutti_turn_end(world), 0);
    if (rank == 0) {
        ranks_say(GO, 1);
        ranks_die();
    }
    if (rank == 2)
        CHECK_IS(tutti_turn_begin(world, NULL), -EOWNERDEAD);
    return 0;
}

static void test_left_after_turn(void **state)
{
    (void)state;
    assert_int_equal(ranks_run(3, body_left_after_turn, 1 << 0), 0);
}

static int body_abort(tutti_comm *world, int rank)
{
    if (rank == 0) {
        CHECK_IS(tutti_turn_begin(world, NULL), 0);
        CHECK_IS(tutti_comm_abort(world, "enough"), 0);
        CHECK_IS(tutti_turn_end(world), 0);
    } else if (rank == 2) {
        /* its turn never came: rank 1 does not call */
        CHECK_IS(tutti_turn_begin(world, NULL), -ECANCELED);
        ranks_say(GO, 1);
    }
    CHECK_IS(ranks_await(GO, 1), 0);
    CHECK_IS(tutti_barrier(world, NULL), -ECANCELED);
    CHECK_IS(tutti_turn_begin(world, NULL), -ECANCELED);
    return 0;
}

static void test_abort(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(3, body_abort), 0);
}

/* The comm fails while rank 2 waits for a turn that will never be: ranks 0 and 1 met a deadline in
   a barrier and may not begin any more. Without a look at the verdict rank 2 would wait out its own
   deadline of half an hour. */
static int body_failed_comm(tutti_comm *world, int rank)
{
    tutti_call soon = { .timeout_ms = 30 };
    if (rank == 2) {
        CHECK_IS(tutti_turn_begin(world, NULL), -ETIMEDOUT);
        CHECK_IS(tutti_barrier(world, NULL), -ECANCELED);
        ranks_say(GO, 1);
        return 0;
    }
    CHECK_IS(tutti_barrier(world, &soon), -ETIMEDOUT);
    CHECK_IS(tutti_turn_begin(world, NULL), -ECANCELED);
    CHECK_IS(ranks_await(GO, 1), 0);
    return 0;
}

static void test_failed_comm(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(3, body_failed_comm), 0);
}

static int body_comms_apart(tutti_comm *world, int rank)
{
    tutti_comm *back;
    CHECK_IS(tutti_comm_split(world, 0, -rank, &back), 0);
    for (int n = 0; n < 50; n++) {
        CHECK_IS(tutti_turn_begin(back, NULL), 0);
        uint64_t *entries = (uint64_t *)(void *)page->bytes;
        page->bytes[8 + entries[0]++] = (char)rank;
        CHECK_IS(tutti_turn_end(back), 0);
    }
    CHECK_IS(tutti_barrier(world, NULL), 0);
    for (int i = 0; i < 150; i++)
        CHECK_IS(page->bytes[8 + i], 2 - i % 3);        /* in the comm's order, not the world's */
    CHECK_IS(tutti_turn_end(world), -EPERM);
    CHECK_IS(tutti_comm_free(back), 0);
    return 0;
}

static void test_comms_apart(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(3, body_comms_apart), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loops),
        cmocka_unit_test(test_misuse),
        cmocka_unit_test(test_deadline),
        cmocka_unit_test(test_death),
        cmocka_unit_test(test_death_elsewhere),
        cmocka_unit_test(test_left_after_turn),
        cmocka_unit_test(test_abort),
        cmocka_unit_test(test_failed_comm),
        cmocka_unit_test(test_comms_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
