/* ctest: timeout=120 labels=faults,tsan */
/* Waits that a verdict ends: that of an operation, asleep or not, and that of a rank which lent its
 * buffers, for their readers. What a sleep watches, and what happens during it, is the test's. */
#include "verdict_rig.h"

#include "watch/drive.h"

#include <errno.h>
#include <linux/futex.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* ---- the operation has succeeded, and who lent its buffers waits for their readers ---- */

static struct wait exit_of(uint32_t reader)
{
    return wait_for_or_gone(&rig.members[reader].consumed, 9, reader);
}

static void an_exit_ends_by_the_reader_alone(void **state)
{
    (void)state;
    struct watch *w = &rig.watch[0];
    struct claim c = claim_of(5);
    struct wait wait = exit_of(2);
    for (uint32_t p = 0; p < N; p++)
        arrive(p, 5);
    assert_int_equal(verdict_look(w, &c, &wait, false), 0);
    assert_true(w->over);
    assert_int_equal(verdict_look(w, &c, &wait, true), 0);    /* no deadline, */
    verdict_quit(&rig.watch[1], QUIT_ABORT);
    verdict_quit(&rig.watch[0], QUIT_INTERRUPT);
    assert_int_equal(verdict_look(w, &c, &wait, true), 0);    /* no abort, not our own, */
    die(1);
    assert_int_equal(verdict_look(w, &c, &wait, true), 0);    /* nobody else's death, */
    say(verdict_confirmed(verdict_make(6, WHY_ABORT, 1, 1)));
    assert_int_equal(verdict_look(w, &c, &wait, true), 0);    /* and no later verdict ends it, */
    say(verdict_make(5, WHY_DEADLINE, 1, 2));
    assert_int_equal(verdict_look(w, &c, &wait, true), 0);    /* a proposal for it is withdrawn, */
    assert_true(said() == 0 && w->over && w->failed == 0);
    store_release64(&rig.members[2].consumed, 8);
    assert_int_equal(verdict_look(w, &c, &wait, false), 0);   /* and not quite is not yet */
    store_release64(&rig.members[2].consumed, 9);
    assert_int_equal(verdict_look(w, &c, &wait, false), 1);
    assert_false(w->over);
}

static void an_exit_ends_by_the_readers_end(void **state)
{
    (void)state;
    struct claim c = claim_of(5);
    for (int how = 0; how < 3; how++) {
        rig_close();
        rig_open(N, NULL);
        struct wait wait = exit_of(2);
        for (uint32_t p = 0; p < N; p++)
            arrive(p, 5);
        assert_int_equal(verdict_look(&rig.watch[0], &c, &wait, false), 0);
        if (how == 0)
            die(2);
        else if (how == 1)
            leave(2);
        else
            rig.watch[0].lost[2] = GONE_DIED;        /* found without a mark */
        assert_int_equal(verdict_look(&rig.watch[0], &c, &wait, false), 1);
        assert_true(said() == 0 && !rig.watch[0].over);
    }
}

/* Alive, but past it: it has freed the comm, left, or come to a later operation. An abort, or where
 * it stands, say nothing of its reading. */
static void an_exit_ends_when_the_reader_is_past_it(void **state)
{
    (void)state;
    static const struct { uint32_t quit; uint64_t arrived; int gives; } rows[] = {
        { 0, 5, 0 }, { QUIT_ABORT, 5, 0 }, { QUIT_INTERRUPT, 5, 0 }, { QUIT_FREED, 5, 1 },
        { QUIT_LEFT, 5, 1 }, { 0, 6, 1 }, { QUIT_ABORT, 6, 1 },
    };
    struct claim c = claim_of(5);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        rig_close();
        rig_open(N, NULL);
        struct wait wait = exit_of(2);
        for (uint32_t p = 0; p < N; p++) {
            arrive(p, 4);
            arrive(p, 5);
        }
        store_release32(&rig.members[2].quit, rows[i].quit);
        if (rows[i].arrived > 5)
            arrive(2, rows[i].arrived);
        int r = verdict_look(&rig.watch[0], &c, &wait, false);
        if (r != rows[i].gives || rig.watch[0].over == rows[i].gives || said() != 0)
            fail_msg("row %zu: %d, should be %d", i, r, rows[i].gives);
    }
}

/* What is waited for now is no exit: with the claim fulfilled nobody has to wait for
 * anything else. */
static void without_leave_a_fulfilled_claim_goes_on(void **state)
{
    (void)state;
    struct claim c = claim_of(5);
    struct wait wait = exit_of(2);
    wait.leave = false;
    for (uint32_t p = 0; p < N; p++)
        arrive(p, 5);
    assert_int_equal(verdict_look(&rig.watch[0], &c, &wait, true), 1);
    assert_false(rig.watch[0].over);
}

/* A verdict that was confirmed before the claim was fulfilled stands, in an exit as well. */
static void a_confirmed_verdict_ends_an_exit(void **state)
{
    (void)state;
    struct claim c = claim_of(5);
    struct wait wait = exit_of(2);
    for (uint32_t p = 0; p < N; p++)
        arrive(p, 5);
    say(verdict_confirmed(verdict_make(5, WHY_DEADLINE, 1, 2)));
    assert_int_equal(verdict_look(&rig.watch[0], &c, &wait, false), -ETIMEDOUT);
    assert_false(rig.watch[0].over);
}

/* An exit sleeps whole slices, also past its deadline, on words as they are: a verdict on a later
 * operation and news of an abort stay. */
static void an_exit_sleeps(void **state)
{
    (void)state;
    struct watch *w = &rig.watch[0];
    struct futex_word words[FUTEX_WORDS];
    struct drive_sleep sleep;
    struct op op = {
        .watch = w, .claim = claim_of(5), .wait = exit_of(2), .timeout_ns = 1000, .slices = 4
    };
    for (uint32_t p = 0; p < N; p++)
        arrive(p, 5);
    rig.now = 1;
    drive_started(&op, rig.now);
    rig.now = 1000000;
    verdict_quit(&rig.watch[1], QUIT_ABORT);
    uint64_t later = verdict_confirmed(verdict_make(6, WHY_ABORT, 1, 1));
    say(later);
    assert_int_equal(drive_look(&op, rig.now), 0);
    assert_int_equal(drive_slice(&op), 250000000);
    int n = drive_gather(&op, words, FUTEX_WORDS, &sleep);
    assert_int_equal(n, 5);
    for (int i = 0; i < n; i++)
        /* nothing there that ends the sleep at once */
        assert_int_equal(load_acquire32(words[i].word), words[i].seen);
    assert_ptr_equal(words[0].word, low_half(&rig.members[2].consumed));
    assert_ptr_equal(words[1].word, low_half(&rig.slot->verdict));
    assert_ptr_equal(words[2].word, &rig.slot->news);
    drive_retire(&rig.ways, &sleep);
    /* The same wait before the claim is fulfilled: each of them ends it. */
    struct op before = {
        .watch = w, .claim = claim_of(7), .wait = exit_of(2), .timeout_ns = 1000000000, .slices = 4
    };
    say(0);
    store_release32(&rig.members[1].quit, 0);
    assert_int_equal(drive_look(&before, rig.now), 0);
    assert_false(w->over);
    say(later);
    fetch_add32(&rig.slot->news, 1);
    drive_gather(&before, words, FUTEX_WORDS, &sleep);
    assert_int_equal(words[1].seen, 0);
    assert_true(words[2].seen != load_acquire32(&rig.slot->news));
    drive_retire(&rig.ways, &sleep);
}

/* ---- the wait around it ---- */

static bool sleeps_on(const shared32 *word, uint32_t seen)
{
    for (int i = 0; i < rig.slept_words; i++)
        if (rig.slept[i].word == word && rig.slept[i].seen == seen)
            return true;
    return false;
}

static void at_third_sleep(struct rig *r)
{
    if (r->sleeps == 3)
        arrive(2, 5);
}

static void a_sleep_watches_all_that_can_end_it(void **state)
{
    (void)state;
    arrive(1, 5);
    fetch_add32(&rig.slot->news, 3);
    rig.during = at_third_sleep;
    struct op op = op_of(0, 5);
    assert_int_equal(drive_to_end(&op), 0);
    assert_int_equal(rig.sleeps, 3);
    assert_true(sleeps_on(low_half(&rig.members[2].arrival[1].seq), 0));
    assert_true(sleeps_on(low_half(&rig.slot->verdict), 0));
    assert_true(sleeps_on(&rig.slot->news, 3));
    /* also of one that has arrived: it may fail the operation's next phase */
    assert_true(sleeps_on(mark(1), 1001 | FUTEX_WAITERS));
    assert_true(sleeps_on(mark(2), 1002 | FUTEX_WAITERS));
    assert_int_equal(load_acquire32(&rig.members[2].sleepers), 0);   /* taken back */
}

static void dies_and_completes(struct rig *r)
{
    if (r->sleeps != 3)
        return;
    die(1);
    arrive(2, 5);
    r->wakes = 0;
}

/* The kernel woke this sleeper alone. It finds its operation complete, and still wakes the others
 * on that mark. */
static void a_death_is_passed_on_before_anything_else(void **state)
{
    (void)state;
    arrive(1, 5);
    rig.during = dies_and_completes;
    struct op op = op_of(0, 5);
    assert_int_equal(drive_to_end(&op), 0);
    assert_int_equal(rig.wakes, 1);
    assert_ptr_equal(rig.woken[0], mark(1));
}

static void dies(struct rig *r)
{
    if (r->sleeps >= 2)
        die(2);
}

static void without_a_wait_on_many_words(void **state)
{
    (void)state;
    arrive(1, 5);
    rig.sleep_result = -ENOSYS;
    rig.during = dies;
    struct op op = op_of(0, 5);
    assert_int_equal(drive_to_end(&op), -EOWNERDEAD);
    expect_verdict(5, WHY_DIED, 2);
}

static void more_ranks_than_one_sleep_can_watch(void **state)
{
    (void)state;
    rig_close();
    rig_open(MOST, NULL);
    for (uint32_t p = 1; p < MOST - 1; p++)
        arrive(p, 5);
    struct op op = op_of(0, 5);
    rig.during = NULL;
    op.timeout_ns = 50000000;
    assert_int_equal(drive_to_end(&op), -ETIMEDOUT);
    assert_int_equal(rig.slept_words, FUTEX_WORDS);
    /* its neighbours; the others have theirs */
    assert_true(sleeps_on(mark(1), 1001 | FUTEX_WAITERS));
}

static void a_kept_operation_is_late_and_whole(void **state)
{
    (void)state;
    arrive(1, 5);
    rig.during = at_third_sleep;
    struct op op = op_of(0, 5);
    op.keep = true;
    op.timeout_ns = 1;
    assert_int_equal(drive_to_end(&op), 0);
    assert_true(op.late);
    assert_true(said() == 0);
}

static void oversleeps(struct rig *r)
{
    /* the machine was suspended for an hour */
    r->now += r->sleeps == 2 ? UINT64_C(3600000000000) : 0;
    if (r->sleeps == 4)
        arrive(2, 5);
}

static void an_hour_asleep_is_not_counted(void **state)
{
    (void)state;
    arrive(1, 5);
    rig.during = oversleeps;
    struct op op = op_of(0, 5);
    op.timeout_ns = INT64_C(60000000000);
    assert_int_equal(drive_to_end(&op), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(an_exit_ends_by_the_reader_alone), CASE(an_exit_ends_by_the_readers_end),
        CASE(an_exit_ends_when_the_reader_is_past_it),
        CASE(without_leave_a_fulfilled_claim_goes_on), CASE(a_confirmed_verdict_ends_an_exit),
        CASE(an_exit_sleeps), CASE(a_sleep_watches_all_that_can_end_it),
        CASE(a_death_is_passed_on_before_anything_else), CASE(without_a_wait_on_many_words),
        CASE(more_ranks_than_one_sleep_can_watch), CASE(a_kept_operation_is_late_and_whole),
        CASE(an_hour_asleep_is_not_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
