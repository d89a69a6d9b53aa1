/* ctest: timeout=300 labels=tsan */
/* What a function under tutti_once did is counted in memory that all ranks share; the words of that
 * memory are also how ranks wait for each other, so nothing here depends on who is quick. */
#include "arena/layout.h"
#include "group/comm.h"
#include "support/ranks.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { RUNS = 0, HELD = 1, GO = 2, FAILED = 3, PASSED = 4 };

static int count_run(void *arg)
{
    fetch_add64(arg, 1);
    return 0;
}

static int body_once_in_total(tutti_comm *world, int rank)
{
    char key[32];
    for (int i = 0; i < 40; i++) {
        snprintf(key, sizeof key, "key %d", i);
        CHECK_IS(tutti_once(key, count_run, &page->number[i], world, NULL), 0);
        CHECK_IS(load_acquire64(&page->number[i]), 1);
    }
    /* A rank that comes when all is over passes without running it. */
    if (rank == 2)
        CHECK_IS(ranks_await(GO, 1), 0);
    else {
        CHECK_IS(tutti_once("late", count_run, &page->number[50], world, NULL), 0);
        if (ranks_count(PASSED) == 1)
            ranks_say(GO, 1);
    }
    CHECK_IS(tutti_once("late", count_run, &page->number[50], world, NULL), 0);
    CHECK_IS(load_acquire64(&page->number[50]), 1);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    /* The result is remembered, by who ran it too, and not as the other kind's key of that name. */
    for (int i = 0; i < 3; i++)
        CHECK_IS(tutti_once("late", count_run, &page->number[50], world, NULL), 0);
    CHECK_IS(load_acquire64(&page->number[50]), 1);
    int first = tutti_first_begin("late", world, NULL);
    CHECK(first == 0 || first == 1);
    if (first)
        CHECK_IS(tutti_first_end("late", 0, world), 0);
    return 0;
}

static void test_once_in_total(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(3, body_once_in_total), 0);
}

/* The runner does not end before the other two sleep for it; what it wrote last, plainly,
 * they read. */
static int run_slowly(void *arg)
{
    tutti_comm *world = arg;
    for (int p = 0; p < 3; p++)
        if (p != tutti_rank(world) && ranks_sleeps_for_key(world, p) < 0)
            return -EIO;
    strcpy(page->bytes, "prepared");
    return 0;
}

static int body_waits_for_end(tutti_comm *world, int rank)
{
    (void)rank;
    CHECK_IS(tutti_once("slow", run_slowly, world, world, NULL), 0);
    CHECK(!strcmp(page->bytes, "prepared"));
    return 0;
}

static void test_waits_for_end(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(3, body_waits_for_end), 0);
}

static int fail_twice(void *arg)
{
    static const int errors[] = { -EIO, 7, 0 };
    (void)arg;
    return errors[ranks_count(RUNS)];
}

static int body_failing(tutti_comm *world, int rank)
{
    (void)rank;
    int r = tutti_once("fails", fail_twice, NULL, world, NULL);
    CHECK(r == 0 || r == -EIO || r == 7);
    if (r)
        ranks_count(r == 7 ? PASSED : FAILED);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    CHECK_IS(load_acquire32(&page->word[RUNS]), 3);
    /* one rank each got an error: the one whose run it was */
    CHECK_IS(load_acquire32(&page->word[FAILED]), 1);
    CHECK_IS(load_acquire32(&page->word[PASSED]), 1);
    return 0;
}

static void test_failing(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(4, body_failing), 0);
}

static int fail_always(void *arg)
{
    fetch_add64(arg, 1);
    return -ENOENT;
}

static int body_all_fail(tutti_comm *world, int rank)
{
    CHECK_IS(tutti_once("never", fail_always, &page->number[0], world, NULL), -ENOENT);
    CHECK_IS(tutti_barrier(world, NULL), 0);                 /* and the comm is whole */
    CHECK_IS(load_acquire64(&page->number[0]), 3);
    /* Who calls later runs it anew. */
    if (rank == 1)
        CHECK_IS(tutti_once("never", count_run, &page->number[1], world, NULL), 0);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    CHECK_IS(tutti_once("never", fail_always, &page->number[0], world, NULL), 0);
    CHECK_IS(load_acquire64(&page->number[0]), 3);
    CHECK_IS(load_acquire64(&page->number[1]), 1);
    return 0;
}

static void test_all_fail(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(3, body_all_fail), 0);
}

static int die_in_it(void *arg)
{
    tutti_comm *world = arg;
    if (tutti_rank(world) != 1)
        return (int)ranks_count(RUNS) & 0;
    ranks_say(GO, 1);
    if (ranks_sleeps_for_key(world, 0) == 0 && ranks_sleeps_for_key(world, 2) == 0)
        ranks_die();
    return -EIO;
}

static int body_runner_killed(tutti_comm *world, int rank)
{
    if (rank != 1)
        CHECK_IS(ranks_await(GO, 1), 0);
    CHECK_IS(tutti_once("dies", die_in_it, world, world, NULL), 0);
    CHECK_IS(load_acquire32(&page->word[RUNS]), 1);          /* one took over, one passed */
    CHECK_IS(tutti_once("dies", die_in_it, world, world, NULL), 0);
    CHECK_IS(load_acquire32(&page->word[RUNS]), 1);
    /* a death is met by the next collective, not by once */
    CHECK_IS(tutti_barrier(world, NULL), -EOWNERDEAD);
    CHECK_IS(tutti_once("dies", die_in_it, world, world, NULL), -ECANCELED);
    return 0;
}

static void test_runner_killed(void **state)
{
    (void)state;
    assert_int_equal(ranks_run(3, body_runner_killed, 1 << 1), 0);
}

struct nested { tutti_comm *world, *other; };

static int run_nested(void *arg)
{
    struct nested *n = arg;
    tutti_comm *world = n->world, *made = NULL;
    int x = 1, list[1] = { tutti_rank(world) };
    CHECK_IS(tutti_barrier(world, NULL), -EDEADLK);
    CHECK_IS(tutti_all_reduce(&x, &x, 1, TUTTI_I32, TUTTI_SUM, world, NULL), -EDEADLK);
    CHECK_IS(tutti_once("inner", count_run, &page->number[1], world, NULL), -EDEADLK);
    CHECK_IS(tutti_once("outer", count_run, &page->number[1], world, NULL), -EDEADLK);
    CHECK_IS(tutti_first_begin("outer", world, NULL), -EDEADLK);
    CHECK_IS(tutti_first_end("outer", 0, world), -EDEADLK);
    CHECK_IS(tutti_turn_begin(world, NULL), -EDEADLK);
    CHECK_IS(tutti_turn_end(world), -EDEADLK);
    CHECK_IS(tutti_comm_split(world, 0, 0, &made), -EDEADLK);
    CHECK_IS(tutti_comm_create(world, list, 1, &made), -EDEADLK);
    CHECK_IS(tutti_finalize(world), -EDEADLK);
    CHECK_IS(tutti_size(world), 2);
    CHECK_IS(tutti_failed(world, NULL, 0), 0);
    /* Other comms are nobody's concern here. */
    CHECK_IS(tutti_barrier(n->other, NULL), 0);
    CHECK_IS(tutti_once("outer", count_run, &page->number[2], n->other, NULL), 0);
    CHECK_IS(tutti_comm_free(n->other), 0);
    return 0;
}

static int body_nested(tutti_comm *world, int rank)
{
    struct nested n = { world, NULL };
    CHECK_IS(tutti_comm_split(world, rank, 0, &n.other), 0);
    CHECK_IS(tutti_once("outer", run_nested, &n, world, NULL), 0);
    CHECK_IS(load_acquire64(&page->number[1]), 0);
    CHECK_IS(load_acquire64(&page->number[2]), 1);
    CHECK_IS(tutti_barrier(world, NULL), 0);                 /* the comm is unharmed */
    CHECK_IS(tutti_once("inner", count_run, &page->number[3], world, NULL), 0);
    CHECK_IS(load_acquire64(&page->number[3]), 1);
    return 0;
}

static void test_nested(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(2, body_nested), 0);
}

static int body_refused(tutti_comm *world, int rank)
{
    static char longest[KEY_TEXT], longer[KEY_TEXT + 1];
    tutti_work *work = (tutti_work *)(void *)&rank;
    tutti_call with_work = { .work = &work }, reserved = { .reserved = { 0, 1 } };
    memset(longest, 'k', sizeof longest - 1);
    memset(longer, 'k', sizeof longer - 1);
    CHECK_IS(tutti_once("a", count_run, &page->number[0], world, &with_work), -EINVAL);
    CHECK(work == NULL);
    CHECK(strstr(tutti_explain(world), "work"));
    CHECK_IS(tutti_once("a", count_run, &page->number[0], world, &reserved), -EINVAL);
    CHECK_IS(tutti_once(NULL, count_run, &page->number[0], world, NULL), -EINVAL);
    CHECK_IS(tutti_once("", count_run, &page->number[0], world, NULL), -EINVAL);
    CHECK_IS(tutti_once("a", NULL, NULL, world, NULL), -EINVAL);
    CHECK_IS(tutti_once("a", count_run, &page->number[0], NULL, NULL), -EINVAL);
    CHECK_IS(tutti_once(longer, count_run, &page->number[0], world, NULL), -EMSGSIZE);
    CHECK(strstr(tutti_explain(world), "256"));
    CHECK_IS(load_acquire64(&page->number[0]), 0);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    CHECK_IS(tutti_once(longest, count_run, &page->number[0], world, NULL), 0);
    CHECK_IS(load_acquire64(&page->number[0]), 1);
    return 0;
}

static void test_refused(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(2, body_refused), 0);
}

static int hold_until_told(void *arg)
{
    (void)arg;
    ranks_say(HELD, 1);
    return ranks_await(GO, 1);
}

static int body_deadline(tutti_comm *world, int rank)
{
    tutti_call soon = { .timeout_ms = 30 };
    /* the comm's own deadline is not for waits on a living runner */
    CHECK_IS(tutti_set_timeout(world, 20), 0);
    if (rank == 0)
        CHECK_IS(tutti_once("held", hold_until_told, NULL, world, NULL), 0);
    else {
        CHECK_IS(ranks_await(HELD, 1), 0);
        CHECK_IS(tutti_once("held", hold_until_told, NULL, world, &soon), -ETIMEDOUT);
        CHECK(strstr(tutti_explain(world), "held") && strstr(tutti_explain(world), "rank 0"));
        CHECK_IS(tutti_once("held", hold_until_told, NULL, world, &soon), -ETIMEDOUT);
        ranks_say(GO, 1);
        CHECK_IS(tutti_once("held", hold_until_told, NULL, world, NULL), 0);
    }
    CHECK_IS(tutti_set_timeout(world, 0), 0);
    CHECK_IS(tutti_barrier(world, NULL), 0);            /* the deadline failed that call alone */
    return 0;
}

static void test_deadline(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(2, body_deadline), 0);
}

/* Longer than the comm's deadline, told from outside: the waiter waits all the same. */
static int body_no_deadline(tutti_comm *world, int rank)
{
    CHECK_IS(tutti_set_timeout(world, 1), 0);
    if (rank == 0) {
        CHECK_IS(tutti_once("held", hold_until_told, NULL, world, NULL), 0);
        return 0;
    }
    CHECK_IS(ranks_await(HELD, 1), 0);
    if (rank == 1) {
        CHECK_IS(tutti_once("held", hold_until_told, NULL, world, NULL), 0);
        return 0;
    }
    CHECK_IS(ranks_sleeps_for_key(world, 1), 0);
    tutti_call soon = { .timeout_ms = 100 };    /* a hundred of the comm's deadlines pass here */
    CHECK_IS(tutti_once("held", hold_until_told, NULL, world, &soon), -ETIMEDOUT);
    ranks_say(GO, 1);
    return 0;
}

static void test_no_deadline(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(3, body_no_deadline), 0);
}

static int body_broken(tutti_comm *world, int rank)
{
    CHECK_IS(tutti_once("before", count_run, &page->number[0], world, NULL), 0);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    if (rank == 0)
        CHECK_IS(tutti_comm_abort(world, "enough"), 0);
    CHECK_IS(tutti_barrier(world, NULL), -ECANCELED);
    CHECK_IS(tutti_once("before", count_run, &page->number[0], world, NULL), -ECANCELED);
    CHECK_IS(tutti_once("after", count_run, &page->number[1], world, NULL), -ECANCELED);
    CHECK_IS(load_acquire64(&page->number[0]), 1);
    CHECK_IS(load_acquire64(&page->number[1]), 0);
    return 0;
}

static void test_broken(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(2, body_broken), 0);
}

static int body_keys_of_comm(tutti_comm *world, int rank)
{
    tutti_comm *pair, *again;
    CHECK_IS(tutti_comm_split(world, rank / 2, 0, &pair), 0);
    CHECK_IS(tutti_comm_split(world, rank / 2, 0, &again), 0);
    CHECK_IS(tutti_once("same", count_run, &page->number[0], world, NULL), 0);
    CHECK_IS(tutti_once("same", count_run, &page->number[1 + rank / 2], pair, NULL), 0);
    CHECK_IS(tutti_once("same", count_run, &page->number[3 + rank / 2], again, NULL), 0);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    for (int i = 0; i < 5; i++)
        CHECK_IS(load_acquire64(&page->number[i]), 1);
    CHECK_IS(tutti_comm_free(pair), 0);
    CHECK_IS(tutti_comm_free(again), 0);
    return 0;
}

static void test_keys_of_comm(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(4, body_keys_of_comm), 0);
}

static int fill(tutti_comm *comm, int from, int to)
{
    char key[32];
    for (int i = from; i < to; i++) {
        snprintf(key, sizeof key, "%d", i);
        int r = tutti_once(key, count_run, &page->number[10], comm, NULL);
        if (r < 0)
            return r;
    }
    return 0;
}

/* The table is full: an error that says so, on that rank, and everything that is there goes on.
 * Room comes back with the comm's end. */
static int body_full_table(tutti_comm *world, int rank)
{
    tutti_comm *sub;
    CHECK_IS(tutti_once("mine", count_run, &page->number[0], world, NULL), 0);
    CHECK_IS(tutti_comm_split(world, 0, 0, &sub), 0);
    CHECK_IS(fill(sub, 0, KEYS_MAX - 1), 0);
    CHECK_IS(tutti_once("one more", count_run, &page->number[1], sub, NULL), -ENOMEM);
    CHECK(strstr(tutti_explain(sub), "one more"));
    CHECK_IS(tutti_once("one more", count_run, &page->number[1], world, NULL), -ENOMEM);
    CHECK_IS(tutti_once("mine", count_run, &page->number[0], world, NULL), 0);
    CHECK_IS(fill(sub, 0, KEYS_MAX - 1), 0);
    CHECK_IS(load_acquire64(&page->number[10]), KEYS_MAX - 1);
    CHECK_IS(tutti_barrier(sub, NULL), 0);
    CHECK_IS(tutti_comm_free(sub), 0);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    CHECK_IS(tutti_once("one more", count_run, &page->number[1], world, NULL), 0);
    CHECK_IS(load_acquire64(&page->number[1]), 1);
    CHECK_IS(load_acquire64(&page->number[0]), 1);
    (void)rank;
    return 0;
}

static void test_full_table(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(2, body_full_table), 0);
}

/* Comms come and go with keys of their own: neither the arena's table nor the rank's books may
 * grow by that. */
static int body_keys_come_and_go(tutti_comm *world, int rank)
{
    (void)rank;
    for (int i = 0; i < ranks_many(3000, 500); i++) {
        tutti_comm *sub;
        CHECK_IS(tutti_comm_split(world, 0, 0, &sub), 0);
        CHECK_IS(tutti_once("a", count_run, &page->number[0], sub, NULL), 0);
        CHECK_IS(tutti_once("b", count_run, &page->number[0], sub, NULL), 0);
        CHECK_IS(tutti_comm_free(sub), 0);
    }
    CHECK_IS(tutti_barrier(world, NULL), 0);
    CHECK_IS(load_acquire64(&page->number[0]), 2 * ranks_many(3000, 500));
    return 0;
}

static void test_keys_come_and_go(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(2, body_keys_come_and_go), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_once_in_total),
        cmocka_unit_test(test_waits_for_end),
        cmocka_unit_test(test_failing),
        cmocka_unit_test(test_all_fail),
        cmocka_unit_test(test_runner_killed),
        cmocka_unit_test(test_nested),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_deadline),
        cmocka_unit_test(test_no_deadline),
        cmocka_unit_test(test_broken),
        cmocka_unit_test(test_keys_of_comm),
        cmocka_unit_test(test_full_table),
        cmocka_unit_test(test_keys_come_and_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
