/* ctest: timeout=60 labels=faults */
/* Deaths without a mark in a wait of many: one rank asks the system for all, and nobody relies on
 * it. The clock, the sleep, and what a peer has asked, are the test's. */
#include "verdict_rig.h"

#include "watch/drive.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sys/wait.h>
#include <unistd.h>

#define MS UINT64_C(1000000)
#define START (1000 * MS)

/* The process of rank p is gone, and its mark is still held. */
static void vanish(uint32_t p)
{
    int to[2];
    assert_int_equal(pipe(to), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct process_id self;
        process_self(&self);
        _exit(write(to[1], &self, sizeof self) != sizeof self);
    }
    assert_int_equal(read(to[0], &rig.seats[p].id, sizeof rig.seats[p].id),
                     sizeof rig.seats[p].id);
    close(to[0]);
    close(to[1]);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void at_start(uint64_t asked)
{
    rig.now = START;
    vanish(2);
    arrive(1, 5);
    store_relaxed64(&rig.slot->asked[1], asked);
}

/* Rank 0 in the midst of its wait for rank 2, after some slices. */
static struct op waits(void)
{
    struct op op = op_of(0, 5);
    op.wait = wait_for(&watch_arrival(op.watch, 2, 5)->seq, 5, 2);
    op.slices = 3;
    return op;
}

/* How long rank 0 waits until it knows, ns. */
static uint64_t until_known(void)
{
    struct op op = op_of(0, 5);
    assert_int_equal(drive_to_end(&op), -EOWNERDEAD);
    expect_verdict(5, WHY_DIED, 2);
    return rig.now - START;
}

static void the_first_to_be_due_asks(void **state)
{
    (void)state;
    at_start(0);
    assert_int_equal(until_known(), 251 * MS);             /* slices of 1 and 250 ms */
    assert_int_equal(load_relaxed64(&rig.slot->asked[1]), START + 251 * MS);
}

static void nobody_asks_what_has_just_been_asked(void **state)
{
    (void)state;
    at_start(START);
    struct op op = waits();
    rig.now += 100 * MS;
    assert_int_equal(drive_look(&op, rig.now), 0);
    assert_int_equal(load_relaxed64(&rig.slot->asked[1]), START);
    assert_int_equal(rig.watch[0].lost[2], GONE_NO);
}

/* Whoever asked last has been stopped, or killed, before it could say what it found. */
static void who_asked_last_is_not_relied_on(void **state)
{
    (void)state;
    at_start(START);
    assert_int_equal(until_known(), 251 * MS);             /* at the end of the next slice */
}

static void a_peer_in_another_operation_asks_for_others(void **state)
{
    (void)state;
    at_start(0);
    store_relaxed64(&rig.slot->asked[0], START);
    assert_int_equal(until_known(), 251 * MS);
}

static void a_clock_far_ahead_holds_nobody_up(void **state)
{
    (void)state;
    at_start(START + 3600000 * MS);
    assert_int_equal(until_known(), 251 * MS);
}

/* The slices of a short deadline are short, and so is the time for which one relies on a peer. */
static void a_short_deadline_asks_more_often(void **state)
{
    (void)state;
    at_start(START);
    rig.watch[0].timeout_ns = 400 * (int64_t)MS;
    struct op op = op_of(0, 5);
    op.timeout_ns = 400 * (int64_t)MS;
    assert_int_equal(drive_to_end(&op), -EOWNERDEAD);
    assert_in_range(rig.now - START, 37 * MS, 100 * MS);
}

/* A rank that cannot see all may have missed a death that a peer would find. */
static void who_sees_not_all_asks_for_itself_alone(void **state)
{
    (void)state;
    at_start(0);
    struct op op = waits();
    process_self(&rig.seats[2].id);
    rig.seats[1].id.pid_namespace++;
    assert_int_equal(drive_look(&op, rig.now), 0);
    assert_true(rig.watch[0].blind);
    assert_int_equal(load_relaxed64(&rig.slot->asked[1]), 0);
    /* and it asks though a peer has just asked, since that one may be blind for others */
    store_relaxed64(&rig.slot->asked[1], rig.now);
    vanish(2);
    assert_int_equal(drive_look(&op, rig.now), -EOWNERDEAD);
}

/* The operation is over: no verdict tells this rank that its reader is gone. */
static void a_reader_is_asked_after_by_the_one_it_reads(void **state)
{
    (void)state;
    at_start(START);
    arrive(0, 5);
    arrive(2, 5);
    struct op op = waits();
    op.wait = wait_for_or_gone(&rig.members[2].consumed, 9, 2);
    assert_int_equal(drive_look(&op, rig.now), 1);
    assert_int_equal(rig.watch[0].lost[2], GONE_DIED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(the_first_to_be_due_asks), CASE(nobody_asks_what_has_just_been_asked),
        CASE(who_asked_last_is_not_relied_on), CASE(a_peer_in_another_operation_asks_for_others),
        CASE(a_clock_far_ahead_holds_nobody_up), CASE(a_short_deadline_asks_more_often),
        CASE(who_sees_not_all_asks_for_itself_alone),
        CASE(a_reader_is_asked_after_by_the_one_it_reads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
