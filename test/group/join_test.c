/* ctest: timeout=120 */
/* Joining as it should go, and each way in which it is refused: the one that is wrong gets a
 * sentence, nobody else is hurt. */
#include "join_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void expect_world(int size)
{
    int hosts = 0;
    for (int p = 0; p < size; p++) {
        struct joiners_report *r = expect_report(p, 0);
        assert_int_equal(r->size, size);
        assert_int_equal(r->birth, joiners.report[0].birth);
        assert_true(r->cpus >= 1 && r->cpus == joiners.report[0].cpus);
        assert_true(r->mark_mine);
        hosts += r->hosted;
    }
    assert_int_equal(hosts, 1);
}

static void test_by_name(void **state)
{
    (void)state;
    static const int sizes[] = { 1, 2, 3, 4, 8, 33 };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (int p = 0; p < sizes[i]; p++)
            start_rank(p, p, sizes[i]);
        expect_world(sizes[i]);
        joiners_let_go(&joiners);          /* the same name serves the next size */
    }
}

/* More ranks than one sleep can watch words. */
static void test_many(void **state)
{
    (void)state;
    enum { N = 140 };
    for (int p = N - 1; p >= 0; p--)
        start_rank(p, p, N);
    expect_world(N);
}

static void test_long_names(void **state)
{
    (void)state;
    char first[300], second[300];
    memset(first, 'n', sizeof first - 1);
    first[sizeof first - 1] = 0;
    memcpy(first, job_name, strlen(job_name));
    strcpy(second, first);
    second[sizeof second - 2] = 'm';                 /* they differ where both are cut */
    for (int p = 0; p < 2; p++) {
        struct join_request r = joiners_request(first, p, 2), s = joiners_request(second, p, 2);
        joiners_start(&joiners, p, &r);
        joiners_start(&joiners, 2 + p, &s);
    }
    expect_world(2);
    assert_int_equal(expect_report(2, 0)->birth, expect_report(3, 0)->birth);
    assert_true(joiners.report[0].birth != joiners.report[2].birth);
}

static void test_bad_requests(void **state)
{
    (void)state;
    static const struct { int rank, size, plan; const char *name; } bad[] = {
        { 0, 0, 1, "n" }, { -1, 2, 2, "n" }, { 2, 2, 2, "n" }, { 0, RANKS_MAX + 1, 1, "n" },
        { 0, 2, 2, NULL }, { 0, 2, 2, "" }, { 0, 2, 3, "n" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct join_request r = joiners_request(bad[i].name, bad[i].rank, bad[i].size);
        r.plan.size = bad[i].plan;
        joiners_start(&joiners, 0, &r);
        expect_report(0, -EINVAL);
    }
}

static void test_deadline(void **state)
{
    (void)state;
    struct join_request hasty = joiners_request(job_name, 0, 4);
    hasty.timeout_ms = 2000;
    start_rank(1, 2, 4);
    assert_true(joiners_sits(&joiners, 1, 2));
    joiners_start(&joiners, 0, &hasty);
    expect_text(0, -ETIMEDOUT, "ranks 1, 3 did not come within 2 s (joined: 0, 2 of 4)");
    /* its own time is not over: it goes on waiting, and meets those who come */
    assert_int_equal(load_acquire32(&joiners.report[1].done), 0);
    for (int p = 0; p < 4; p++)
        if (p != 2)
            start_rank(p == 1 ? 2 : p, p, 4);
    for (int slot = 0; slot < 4; slot++)
        assert_int_equal(expect_report(slot, 0)->birth, expect_report(1, 0)->birth);
    joiners_let_go(&joiners);
    for (int p = 0; p < 2; p++)
        start_rank(p, p, 2);
    expect_world(2);
}

/* One rank is missing: "rank 1", not "ranks 1". The host gives up first here, its guest in the
 * test above. */
static void test_deadline_of_host(void **state)
{
    (void)state;
    struct join_request hasty = joiners_request(job_name, 0, 2);
    hasty.timeout_ms = 150;
    joiners_start(&joiners, 0, &hasty);
    expect_text(0, -ETIMEDOUT, "rank 1 did not come within 150 ms (joined: 0 of 2)");
}

static void test_wrong_size(void **state)
{
    (void)state;
    start_rank(0, 0, 2);
    assert_true(joiners_sits(&joiners, 0, 0));
    start_rank(2, 1, 3);
    expect_text(2, -EPROTO, "this job has 2 ranks, you said 3");
    start_rank(1, 1, 2);
    expect_world(2);
}

static void test_seat_taken(void **state)
{
    (void)state;
    char who[64];
    start_rank(0, 0, 3);
    assert_true(joiners_sits(&joiners, 0, 0));
    start_rank(1, 1, 3);
    assert_true(joiners_sits(&joiners, 1, 1));
    start_rank(3, 1, 3);
    snprintf(who, sizeof who, "rank 1 has joined already (pid %d, ", (int)joiners.pid[1]);
    expect_text(3, -EEXIST, who);
    start_rank(4, 0, 3);
    expect_text(4, -EEXIST, "rank 0 has joined already (pid ");
    start_rank(2, 2, 3);
    expect_world(3);
}

/* Two that say they are the same rank, at the same time: one gets the seat, whichever. */
static void test_two_for_one_seat(void **state)
{
    (void)state;
    for (int i = 0; i < joiners_prove(10, 500); i++) {
        start_rank(0, 0, 2);
        start_rank(1, 1, 2);
        start_rank(2, 1, 2);
        expect_report(0, 0);
        struct joiners_report *a = joiners_wait(&joiners, 1), *b = joiners_wait(&joiners, 2);
        assert_non_null(a);
        assert_non_null(b);
        struct joiners_report *lost = a->error ? a : b;
        assert_int_equal((a->error == 0) + (b->error == 0), 1);
        assert_int_equal(lost->error, -EEXIST);
        joiners_let_go(&joiners);
    }
}

/* ---- inherited ---- */

static struct arena inherited;

static int setup_inherited(void **state)
{
    char room[256];
    struct text why = TEXT_IN(room);
    join_setup(state);
    return arena_create(&inherited,
                        &(struct arena_plan){
                            .size = 3, .job = "down", .span_bytes = UINT64_C(16) << 20 },
                        &why);
}

static int teardown_inherited(void **state)
{
    join_teardown(state);
    arena_detach(&inherited);
    return 0;
}

static void start_down(int slot, int rank, int size, int timeout_ms)
{
    struct join_request r = {
        .fd = inherited.fd, .rank = rank, .size = size, .timeout_ms = timeout_ms
    };
    joiners_start(&joiners, slot, &r);
}

static void test_inherited(void **state)
{
    (void)state;
    for (int p = 0; p < 3; p++)
        start_down(p, p, 3, 60000);
    for (int p = 0; p < 3; p++) {
        assert_int_equal(expect_report(p, 0)->birth, inherited.header->birth);
        assert_false(joiners.report[p].hosted);
    }
    start_down(3, 1, 3, 60000);
    expect_text(3, -EEXIST, "rank 1 has joined already");
    joiners_let_go(&joiners);
    start_down(3, 1, 3, 60000);
    expect_text(3, -ESTALE, "rank 1 has joined and left (pid ");
}

static void test_inherited_refusals(void **state)
{
    (void)state;
    start_down(0, 0, 2, 60000);
    expect_text(0, -EPROTO, "this job has 3 ranks, you said 2");
    start_down(0, 3, 3, 60000);
    expect_report(0, -EINVAL);
    struct join_request r = { .fd = STDERR_FILENO, .rank = 0, .size = 3, .timeout_ms = 60000 };
    joiners_start(&joiners, 0, &r);
    expect_report(0, -EINVAL);
    r.fd = 9999;
    joiners_start(&joiners, 0, &r);
    expect_report(0, -EINVAL);
}

/* A rank that was killed in an earlier life of the arena leaves a seat that nobody can sit
 * in again. */
static void test_inherited_after_death(void **state)
{
    (void)state;
    for (int p = 0; p < 3; p++)
        start_down(p, p, 3, 60000);
    for (int p = 0; p < 3; p++)
        expect_report(p, 0);
    joiners_kill(&joiners, 2);
    start_down(2, 2, 3, 60000);
    expect_report(2, -ESTALE);
}

static void test_inherited_deadline(void **state)
{
    (void)state;
    start_down(0, 0, 3, 100);
    expect_text(0, -ETIMEDOUT, "ranks 1, 2 did not come within 100 ms");
    /* it comes late to a world that was given up, and has no name to meet under */
    start_down(1, 1, 3, 60000);
    expect_text(1, -ETIMEDOUT, "did not come");
}

/* The same with a name: who has given up meets by it those who go on, and those who come to the
 * inherited arena when it has been given up. */
static void start_both(int slot, int rank, int timeout_ms)
{
    struct join_request r = joiners_request(job_name, rank, 3);
    r.fd = inherited.fd;
    r.timeout_ms = timeout_ms;
    joiners_start(&joiners, slot, &r);
}

static void test_inherited_then_by_name(void **state)
{
    (void)state;
    start_both(1, 1, 60000);
    while (load_acquire32(&inherited.seats[1].state) != SEAT_JOINED)
        sched_yield();
    start_both(0, 0, 100);
    expect_text(0, -ETIMEDOUT, "rank 2 did not come within 100 ms (joined: 0, 1 of 3)");
    start_both(2, 2, 60000);
    start_both(0, 0, 60000);
    expect_world(3);
    assert_true(joiners.report[0].birth != inherited.header->birth);
}

/* The launcher reaped a rank that never joined: nobody waits for it. */
static void test_launcher_says_it_ended(void **state)
{
    (void)state;
    start_down(0, 0, 3, 60000);
    assert_true(joiners_sits(&joiners, 0, 0));
    store_release32(&inherited.seats[2].status, (uint32_t)(7 << 8) << 1 | 1);
    expect_text(0, -EOWNERDEAD, "rank 2 ended before it joined: exit status 7");
}

int main(void)
{
#define OF(test) cmocka_unit_test_setup_teardown(test, join_setup, join_teardown)
#define DOWN(test) cmocka_unit_test_setup_teardown(test, setup_inherited, teardown_inherited)
    const struct CMUnitTest tests[] = {
        OF(test_by_name), OF(test_many), OF(test_long_names), OF(test_bad_requests),
        OF(test_deadline), OF(test_deadline_of_host), OF(test_wrong_size), OF(test_seat_taken),
        OF(test_two_for_one_seat), DOWN(test_inherited), DOWN(test_inherited_refusals),
        DOWN(test_inherited_after_death), DOWN(test_inherited_deadline),
        DOWN(test_inherited_then_by_name), DOWN(test_launcher_says_it_ended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
