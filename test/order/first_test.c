/* ctest: timeout=300 labels=tsan */
/* first_begin and first_end: who goes first, round by round, and what becomes of the rest when that
 * one fails, dies or does not come. */
#include "arena/layout.h"
#include "order/keys.h"
#include "support/ranks.h"

#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { BEGUN = 0, GO = 1, RUNS = 2, LATE = 3 };

/* The n-th call of one rank meets the n-th of the others: each round has one first, and what it
 * wrote is read by all, plainly. */
static int body_loops(tutti_comm *world, int rank)
{
    static const char *const keys[] = { "a", "b", "c", "d", "e" };
    uint32_t *written = (uint32_t *)(void *)page->bytes;
    int rounds = ranks_many(400, 100);
    for (int n = 0; n < rounds; n++)
        for (int k = 0; k < 5; k++) {
            uint32_t *cell = &written[n * 5 + k];
            int first = tutti_first_begin(keys[k], world, NULL);
            CHECK(first == 0 || first == 1);
            if (first) {
                CHECK_IS(*cell, 0);
                *cell = (uint32_t)(n * 5 + k + 1);
                fetch_add64(&page->number[k], 1);
                CHECK_IS(tutti_first_end(keys[k], 0, world), 0);
            }
            CHECK_IS(*cell, n * 5 + k + 1);
        }
    CHECK_IS(tutti_barrier(world, NULL), 0);
    for (int k = 0; k < 5; k++)
        CHECK_IS(load_acquire64(&page->number[k]), rounds);
    (void)rank;
    return 0;
}

static void test_loops(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(3, body_loops), 0);
}

static struct key *key_named(tutti_comm *world, const char *name)
{
    for (int i = 0; i < KEYS_MAX; i++)
        if (!strcmp(world->world->arena.keys[i].text, name))
            return &world->world->arena.keys[i];
    return NULL;
}

/* A loop of a hundred thousand rounds is a training loop. The state's version has few bits: where
   it wraps, no round may be lost. It is set near its end here, in the state that a key is in after
   65,000 rounds. */
static int body_version_wraps(tutti_comm *world, int rank)
{
    for (int n = 0; n < 20; n++) {
        if (n == 5 && rank == 0) {
            struct key *key = key_named(world, "wraps");
            CHECK(key);
            store_release64(&key->state, load_acquire64(&key->state) | UINT64_C(0xfffe8000));
        }
        CHECK_IS(tutti_barrier(world, NULL), 0);
        int first = tutti_first_begin("wraps", world, NULL);
        CHECK(first == 0 || first == 1);
        if (first) {
            fetch_add64(&page->number[n], 1);
            CHECK_IS(tutti_first_end("wraps", 0, world), 0);
        }
        CHECK_IS(tutti_barrier(world, NULL), 0);
        CHECK_IS(load_acquire64(&page->number[n]), 1);
    }
    return 0;
}

static void test_version_wraps(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(2, body_version_wraps), 0);
}

/* Rounds are counted in 64 bits. Every rank's books and the key's are set near the end of 32 here,
 * as after that many rounds. */
static int body_rounds_beyond_32_bits(tutti_comm *world, int rank)
{
    const uint64_t near = UINT32_MAX - UINT64_C(3);
    int error;
    struct key_call *call = keys_find(world, KIND_FIRST_BEGIN, "many", true, &error);
    CHECK(call);
    call->calls = near;
    if (rank == 0)
        store_release64(&call->key->rounds, near);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    for (int n = 0; n < 10; n++) {
        int first = tutti_first_begin("many", world, NULL);
        CHECK(first == 0 || first == 1);
        if (first) {
            fetch_add64(&page->number[n], 1);
            CHECK_IS(tutti_first_end("many", 0, world), 0);
        }
        CHECK_IS(load_acquire64(&page->number[n]), 1);
    }
    CHECK_IS(load_acquire64(&call->key->rounds), near + 10);
    call->calls = 0;                    /* a rank that comes late by any number of rounds goes on */
    CHECK_IS(tutti_first_begin("many", world, NULL), 0);
    return 0;
}

static void test_rounds_beyond_32_bits(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(2, body_rounds_beyond_32_bits), 0);
}

/* A runner that dies when its round is done, but before it has said that nobody runs: the round is
 * not run again. */
static int body_dies_behind_its_round(tutti_comm *world, int rank)
{
    int error;
    struct key_call *call = keys_find(world, KIND_FIRST_BEGIN, "done", true, &error);
    CHECK(call);
    if (rank == 0) {
        CHECK_IS(tutti_first_begin("done", world, NULL), 1);
        store_release64(&call->key->rounds, 1);
        ranks_die();
    }
    while (load_acquire64(&call->key->rounds) < 1)
        sched_yield();
    CHECK_IS(tutti_first_begin("done", world, NULL), 0);
    /* of the dead one nobody has to be told any more */
    CHECK_IS(tutti_first_begin("done", world, NULL), 1);
    CHECK_IS(tutti_first_end("done", 0, world), 0);
    return 0;
}

static void test_dies_behind_its_round(void **state)
{
    (void)state;
    assert_int_equal(ranks_run(2, body_dies_behind_its_round, 1 << 0), 0);
}

/* The well-known trap: a block that rank 0 alone reaches, with a "rank 0 first" inside. Nobody
 * waits for those who never call. */
static int body_only_some(tutti_comm *world, int rank)
{
    for (int i = 0; i < 3; i++) {
        if (rank == 0) {
            CHECK_IS(tutti_first_begin("rank 0 only", world, NULL), 1);
            CHECK_IS(tutti_first_end("rank 0 only", 0, world), 0);
        }
        CHECK_IS(tutti_barrier(world, NULL), 0);
    }
    if (rank == 1)
        for (int i = 0; i < 3; i++)
            /* three rounds are done; a fourth is its own */
            CHECK_IS(tutti_first_begin("rank 0 only", world, NULL), 0);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    if (rank == 1) {
        CHECK_IS(tutti_first_begin("rank 0 only", world, NULL), 1);
        CHECK_IS(tutti_first_end("rank 0 only", 0, world), 0);
    }
    return 0;
}

static void test_only_some(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(3, body_only_some), 0);
}

static int body_misuse(tutti_comm *world, int rank)
{
    static char longest[KEY_TEXT], longer[KEY_TEXT + 1];
    tutti_work *work = (tutti_work *)(void *)&rank;
    tutti_call with_work = { .work = &work };
    memset(longest, 'k', sizeof longest - 1);
    memset(longer, 'k', sizeof longer - 1);
    CHECK_IS(tutti_first_end("x", 0, world), -EPERM);        /* a key that nobody has begun */
    CHECK_IS(tutti_barrier(world, NULL), 0);
    if (rank == 0) {
        CHECK_IS(tutti_first_begin("x", world, NULL), 1);
        CHECK_IS(tutti_first_begin("x", world, NULL), -EDEADLK);
        CHECK(strstr(tutti_explain(world), "first_end"));
        ranks_say(BEGUN, 1);
        CHECK_IS(ranks_await(GO, 1), 0);
        CHECK_IS(tutti_first_end("x", 0, world), 0);
        CHECK_IS(tutti_first_end("x", 0, world), -EPERM);    /* once only */
    } else {
        CHECK_IS(ranks_await(BEGUN, 1), 0);
        /* it runs, but on another rank: nothing is done by this */
        CHECK_IS(tutti_first_end("x", 0, world), -EPERM);
        CHECK_IS(tutti_first_end("x", -EIO, world), -EPERM);
        tutti_call soon = { .timeout_ms = 20 };
        CHECK_IS(tutti_first_begin("x", world, &soon), -ETIMEDOUT);
        ranks_say(GO, 1);
        /* the call that failed counts for nothing: this is round 1 */
        CHECK_IS(tutti_first_begin("x", world, NULL), 0);
        CHECK_IS(tutti_first_end("x", 0, world), -EPERM);
    }
    CHECK_IS(tutti_first_begin("x", world, &with_work), -EINVAL);
    CHECK(work == NULL);
    CHECK_IS(tutti_first_begin(NULL, world, NULL), -EINVAL);
    CHECK_IS(tutti_first_begin("", world, NULL), -EINVAL);
    CHECK_IS(tutti_first_end(NULL, 0, world), -EINVAL);
    CHECK_IS(tutti_first_begin("x", NULL, NULL), -EINVAL);
    CHECK_IS(tutti_first_begin(longer, world, NULL), -EMSGSIZE);
    CHECK_IS(tutti_first_end(longer, 0, world), -EMSGSIZE);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    int first = tutti_first_begin(longest, world, NULL);
    CHECK(first == 0 || first == 1);
    CHECK_IS(tutti_first_end(longest, 0, world), first ? 0 : -EPERM);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    return 0;
}

static void test_misuse(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(2, body_misuse), 0);
}

/* A first one that fails: it alone gets its error, one waiting rank goes first instead, the third
 * uses what that one made. */
static int body_error_in_end(tutti_comm *world, int rank)
{
    int first = tutti_first_begin("e", world, NULL);
    CHECK(first == 0 || first == 1);
    if (first && ranks_count(RUNS) == 0) {
        for (int p = 0; p < 3; p++)
            CHECK(p == rank || ranks_sleeps_for_key(world, p) == 0);
        CHECK_IS(tutti_first_end("e", -ENOSPC, world), -ENOSPC);
        CHECK_IS(ranks_await(RUNS, 2), 0);
        CHECK_IS(tutti_first_begin("e", world, NULL), 0);    /* its round is still round 1 */
    } else if (first)
        CHECK_IS(tutti_first_end("e", 0, world), 0);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    CHECK_IS(load_acquire32(&page->word[RUNS]), 2);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    first = tutti_first_begin("e", world, NULL);             /* round 2, for all of them */
    CHECK(first == 0 || first == 1);
    if (first) {
        ranks_count(RUNS);
        CHECK_IS(tutti_first_end("e", 0, world), 0);
    }
    CHECK_IS(tutti_barrier(world, NULL), 0);
    CHECK_IS(load_acquire32(&page->word[RUNS]), 3);
    return 0;
}

static void test_error_in_end(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(3, body_error_in_end), 0);
}

static int body_all_fail(tutti_comm *world, int rank)
{
    /* each in turn: whoever waits takes over from the one that failed */
    CHECK_IS(tutti_first_begin("f", world, NULL), 1);
    fetch_add64(&page->number[0], 1);
    CHECK_IS(tutti_first_end("f", 5, world), 5);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    CHECK_IS(load_acquire64(&page->number[0]), 3);
    if (rank == 2) {
        CHECK_IS(tutti_first_begin("f", world, NULL), 1);
        CHECK_IS(tutti_first_end("f", 0, world), 0);
    }
    CHECK_IS(tutti_barrier(world, NULL), 0);
    if (rank != 2)
        CHECK_IS(tutti_first_begin("f", world, NULL), 0);
    return 0;
}

static void test_all_fail(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(3, body_all_fail), 0);
}

static int body_runner_dies(tutti_comm *world, int rank)
{
    if (rank == 1) {
        CHECK_IS(tutti_first_begin("d", world, NULL), 1);
        ranks_say(BEGUN, 1);
        CHECK(ranks_sleeps_for_key(world, 0) == 0 && ranks_sleeps_for_key(world, 2) == 0);
        ranks_die();
    }
    CHECK_IS(ranks_await(BEGUN, 1), 0);
    int first = tutti_first_begin("d", world, NULL);
    CHECK(first == 0 || first == 1);
    if (first) {
        CHECK_IS(ranks_count(RUNS), 0);
        CHECK_IS(tutti_first_end("d", 0, world), 0);
    }
    CHECK_IS(ranks_await(RUNS, 1), 0);
    /* The comm is not broken by it: the keys go on, and only a collective meets the death. */
    first = tutti_first_begin("d", world, NULL);
    CHECK(first == 0 || first == 1);
    if (first)
        CHECK_IS(tutti_first_end("d", 0, world), 0);
    CHECK_IS(tutti_barrier(world, NULL), -EOWNERDEAD);
    CHECK_IS(tutti_first_begin("d", world, NULL), -ECANCELED);
    return 0;
}

static void test_runner_dies(void **state)
{
    (void)state;
    assert_int_equal(ranks_run(3, body_runner_dies, 1 << 1), 0);
}

/* Frees the comm, or leaves the world, with a key still running: that is an end of the
 * runner, too. */
static int body_runner_leaves(tutti_comm *world, int rank)
{
    tutti_comm *sub;
    CHECK_IS(tutti_comm_split(world, 0, 0, &sub), 0);
    if (rank == 0) {
        CHECK_IS(tutti_first_begin("l", sub, NULL), 1);
        CHECK_IS(tutti_first_begin("l", world, NULL), 1);
        ranks_say(BEGUN, 1);
        CHECK_IS(ranks_sleeps_for_key(world, 1), 0);
        CHECK_IS(tutti_comm_free(sub), 0);
        CHECK_IS(ranks_await(GO, 1), 0);
        CHECK_IS(ranks_sleeps_for_key(world, 1), 0);
        return 0;                                   /* an orderly end, a running key left behind */
    }
    CHECK_IS(ranks_await(BEGUN, 1), 0);
    CHECK_IS(tutti_first_begin("l", sub, NULL), 1);
    CHECK_IS(tutti_first_end("l", 0, sub), 0);
    ranks_say(GO, 1);
    CHECK_IS(tutti_first_begin("l", world, NULL), 1);
    CHECK_IS(tutti_first_end("l", 0, world), 0);
    return 0;
}

static void test_runner_leaves(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(2, body_runner_leaves), 0);
}

/* An abort ends those who wait; the runner, whose comm is broken too, may still end its key. */
static int body_abort(tutti_comm *world, int rank)
{
    if (rank == 0) {
        CHECK_IS(tutti_first_begin("a", world, NULL), 1);
        ranks_say(BEGUN, 1);
        CHECK_IS(ranks_await(GO, 1), 0);
        CHECK_IS(tutti_first_end("a", 0, world), 0);
    } else if (rank == 1) {
        CHECK_IS(ranks_await(BEGUN, 1), 0);
        CHECK_IS(tutti_first_begin("a", world, NULL), -ECANCELED);
        ranks_say(GO, 1);
    } else {
        CHECK_IS(ranks_await(BEGUN, 1), 0);
        CHECK_IS(ranks_sleeps_for_key(world, 1), 0);
        CHECK_IS(tutti_comm_abort(world, "enough"), 0);
    }
    int x = tutti_barrier(world, NULL);
    CHECK_IS(x, -ECANCELED);
    return 0;
}

static void test_abort(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(3, body_abort), 0);
}

/* The runner ends the key, and then the comm fails, while the waiter has seen the key run and not
 * begun to sleep: the key is done. */
static int looks_at_clock;

static uint64_t slow_now(void *arg)
{
    if (++looks_at_clock == 2) {                     /* the first is when the wait begins */
        ranks_say(GO, 1);
        if (ranks_await(LATE, 1))
            _exit(9);
    }
    return wait_ways_kernel.now(arg);
}

static int body_done_then_broken(tutti_comm *world, int rank)
{
    struct wait_ways slow = wait_ways_kernel;
    const struct wait_ways *normal = world->watch.ways;
    slow.now = slow_now;
    if (rank == 0) {
        CHECK_IS(tutti_first_begin("a", world, NULL), 1);
        ranks_say(BEGUN, 1);
        CHECK_IS(ranks_await(GO, 1), 0);
        CHECK_IS(tutti_first_end("a", 0, world), 0);
        CHECK_IS(tutti_comm_abort(world, "enough"), 0);
        ranks_say(LATE, 1);
    } else {
        CHECK_IS(ranks_await(BEGUN, 1), 0);
        looks_at_clock = 0;
        world->watch.ways = &slow;
        CHECK_IS(tutti_first_begin("a", world, NULL), 0);
        world->watch.ways = normal;
        CHECK(looks_at_clock >= 2);
    }
    CHECK_IS(tutti_barrier(world, NULL), -ECANCELED);
    return 0;
}

static void test_done_then_broken(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(2, body_done_then_broken), 0);
}

/* Many keys run at once by one rank, many waited for: the books move, the keys do not. */
static int body_many_at_once(tutti_comm *world, int rank)
{
    char key[16];
    int keys = 300;
    if (rank == 0) {
        for (int i = 0; i < keys; i++) {
            snprintf(key, sizeof key, "%d", i);
            CHECK_IS(tutti_first_begin(key, world, NULL), 1);
        }
        ranks_say(BEGUN, 1);
        for (int i = keys - 1; i >= 0; i--) {
            snprintf(key, sizeof key, "%d", i);
            CHECK_IS(tutti_first_end(key, 0, world), 0);
        }
    } else {
        CHECK_IS(ranks_await(BEGUN, 1), 0);
        for (int i = 0; i < keys; i++) {
            snprintf(key, sizeof key, "%d", i);
            CHECK_IS(tutti_first_begin(key, world, NULL), 0);
        }
    }
    CHECK_IS(tutti_barrier(world, NULL), 0);
    return 0;
}

static void test_many_at_once(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(2, body_many_at_once), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loops),
        cmocka_unit_test(test_version_wraps),
        cmocka_unit_test(test_rounds_beyond_32_bits),
        cmocka_unit_test(test_dies_behind_its_round),
        cmocka_unit_test(test_only_some),
        cmocka_unit_test(test_misuse),
        cmocka_unit_test(test_error_in_end),
        cmocka_unit_test(test_all_fail),
        cmocka_unit_test(test_runner_dies),
        cmocka_unit_test(test_runner_leaves),
        cmocka_unit_test(test_abort),
        cmocka_unit_test(test_done_then_broken),
        cmocka_unit_test(test_many_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
