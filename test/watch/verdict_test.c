/* ctest: timeout=120 labels=faults,tsan */
/* The verdict by hand: the words that a dead or slow rank would have left are written by the test.
 * So each rule of the protocol has its own small case, without a process and without luck. The
 * wait around it: verdict_wait_test. Races: verdict_race_test. */
#include "verdict_rig.h"

#include "support/team.h"
#include "watch/death.h"
#include "watch/drive.h"
#include "watch/journal.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

/* ---- what stands in the word ---- */

static void a_word_says_what_was_put_in(void **state)
{
    (void)state;
    for (unsigned why = WHY_DIED; why <= WHY_DEVICE; why++) {
        uint64_t v = verdict_make(UINT64_C(0x123456789), why, 1023, 16383);
        assert_int_equal(verdict_state(v), VERDICT_PROPOSED);
        assert_int_equal(verdict_state(verdict_confirmed(v)), VERDICT_CONFIRMED);
        assert_int_equal(verdict_why(verdict_confirmed(v)), why);
        assert_int_equal(verdict_by(verdict_confirmed(v)), 1023);
        assert_int_equal(verdict_who(verdict_confirmed(v)), 16383);
        assert_int_equal(verdict_after(verdict_confirmed(v), UINT64_C(0x123456789)), 0);
        assert_true((uint32_t)v != 0);      /* sleepers wait for the low half to be other than 0 */
    }
}

static void numbers_are_compared_around_their_end(void **state)
{
    (void)state;
    const uint64_t around[] = {
        UINT64_C(1) << 29, UINT64_C(1) << 30, UINT64_C(1) << 31, UINT64_C(1) << 32,
        UINT64_C(3) << 30, UINT64_C(1) << 40
    };
    for (size_t i = 0; i < sizeof around / sizeof around[0]; i++)
        for (int64_t a = -2; a <= 2; a++)
            for (int64_t b = -2; b <= 2; b++) {
                uint64_t v = verdict_make(around[i] + (uint64_t)a, WHY_DIED, 0, 0);
                assert_int_equal(verdict_after(v, around[i] + (uint64_t)b), a - b);
                assert_int_equal(verdict_after(verdict_confirmed(v), around[i] + (uint64_t)b),
                                 a - b);
            }
}

static void each_reason_has_its_error(void **state)
{
    (void)state;
    static const int error[] = {
        [WHY_DIED] = -EOWNERDEAD, [WHY_LEFT] = -EOWNERDEAD, [WHY_FREED] = -EOWNERDEAD,
        [WHY_DEADLINE] = -ETIMEDOUT, [WHY_MISMATCH] = -EPROTO, [WHY_ABORT] = -ECANCELED,
        [WHY_DEADLOCK] = -EDEADLK, [WHY_INTERRUPT] = -ECANCELED, [WHY_DEVICE] = -EIO
    };
    for (unsigned why = WHY_DIED; why <= WHY_DEVICE; why++)
        assert_int_equal(verdict_error(verdict_confirmed(verdict_make(1, why, 0, 0))), error[why]);
}

/* ---- half-finished words, and how the living get past them ---- */

static void a_dead_proposers_proposal_is_decided(void **state)
{
    (void)state;
    arrive(0, 5);
    arrive(1, 5);
    die(2);
    say(verdict_make(5, WHY_DEADLINE, 1, 2));        /* rank 1 proposed and was killed */
    die(1);
    /* his reason stands, though we would have found another */
    assert_int_equal(look(0, 5, false), -ETIMEDOUT);
    expect_verdict(5, WHY_DEADLINE, 2);
    assert_int_equal(verdict_by(said()), 1);
    assert_true(load_acquire32(&rig.watch[0].attention) & ATTENTION_BROKEN);
    assert_int_equal(rig.wakes, 1);
    assert_ptr_equal(rig.woken[0], low_half(&rig.slot->verdict));
}

static void a_proposal_is_withdrawn_where_all_are_there(void **state)
{
    (void)state;
    for (uint32_t p = 0; p < N; p++)
        arrive(p, 5);
    say(verdict_make(5, WHY_DIED, 1, 2));
    die(1);
    die(2);
    assert_int_equal(look(0, 5, true), 1);
    assert_true(said() == 0);
    say(verdict_make(5, WHY_DIED, 1, 2));
    assert_int_equal(complete(0, 5), 0);
    assert_true(said() == 0);
    assert_int_equal(load_acquire32(&rig.watch[0].attention), 0);
}

static void a_confirmed_verdict_is_final(void **state)
{
    (void)state;
    uint64_t v = verdict_confirmed(verdict_make(5, WHY_DEADLINE, 1, 2));
    for (uint32_t p = 0; p < N; p++)
        arrive(p, 5);                                /* the late one came after all */
    say(v);
    for (uint32_t p = 0; p < N; p++) {
        assert_int_equal(complete(p, 5), -ETIMEDOUT);
        assert_int_equal(look(p, 5, false), -ETIMEDOUT);
        assert_true(rig.watch[p].failed == v);
    }
    assert_true(said() == v);
}

/* Who died without a mark only the finder has asked the system about; the verdict tells the others,
 * and it alone must be believed. */
static void a_death_without_a_mark_is_passed_on(void **state)
{
    (void)state;
    arrive(0, 5);
    arrive(1, 5);
    say(verdict_confirmed(verdict_make(5, WHY_DIED, 1, 2)));
    assert_int_equal(look(0, 5, false), -EOWNERDEAD);
    assert_int_equal(rig.watch[0].lost[2], GONE_DIED);
    say(verdict_make(5, WHY_DIED, 1, 2));
    verdict_note(&rig.watch[1], said());             /* a proposal is no fact yet */
    assert_int_equal(rig.watch[1].lost[2], GONE_NO);
}

static void a_stale_proposal_is_cleared(void **state)
{
    (void)state;
    arrive(0, 6);
    arrive(1, 6);
    /* all had reached 5; its proposer died before it withdrew */
    say(verdict_make(5, WHY_DIED, 1, 2));
    assert_int_equal(look(0, 6, false), 0);
    assert_true(said() == 0);
    arrive(2, 6);
    say(verdict_make(5, WHY_DIED, 1, 2));
    assert_int_equal(complete(0, 6), 0);
}

static void a_later_proposal_means_success(void **state)
{
    (void)state;
    for (uint32_t p = 0; p < N; p++)
        arrive(p, 5);
    arrive(1, 6);
    for (int confirmed = 0; confirmed < 2; confirmed++) {
        uint64_t v = verdict_make(6, WHY_DEADLINE, 1, 2);
        say(confirmed ? verdict_confirmed(v) : v);
        assert_int_equal(complete(0, 5), 0);
        assert_int_equal(look(2, 5, true), 1);
        assert_true(said() == (confirmed ? verdict_confirmed(v) : v));
    }
}

static void words_near_the_end_of_the_number(void **state)
{
    (void)state;
    const uint64_t ends[] = { UINT64_C(1) << 30, UINT64_C(1) << 32 };
    for (size_t i = 0; i < 2; i++)
        for (uint64_t k = ends[i] - 2; k <= ends[i] + 2; k++) {
            for (uint32_t p = 0; p < N; p++)
                arrive(p, k);
            say(verdict_make(k - 1, WHY_DIED, 1, 2));
            assert_int_equal(complete(0, k), 0);     /* stale */
            say(verdict_make(k + 1, WHY_DIED, 1, 2));
            assert_int_equal(complete(0, k), 0);     /* of the next */
            say(verdict_make(k, WHY_DIED, 1, 2));
            assert_int_equal(complete(0, k), 0);     /* withdrawn */
            assert_true(said() == 0);
            arrive(0, k + 1);
            assert_int_equal(look(0, k + 1, false), 0);
            assert_int_equal(look(0, k + 1, true), -ETIMEDOUT);
            expect_verdict(k + 1, WHY_DEADLINE, 1);
            say(0);
            rig.watch[0].attention = 0;
        }
}

/* ---- who is blamed, and for what ---- */

static void a_dead_rank_that_did_its_part_is_not_blamed(void **state)
{
    (void)state;
    arrive(0, 5);
    arrive(2, 5);
    die(2);
    assert_int_equal(look(0, 5, false), 0);          /* rank 1 is waited for */
    arrive(1, 5);
    assert_int_equal(look(0, 5, false), 1);
    arrive(0, 6);
    arrive(1, 6);
    assert_int_equal(look(0, 6, false), -EOWNERDEAD);
    expect_verdict(6, WHY_DIED, 2);
}

/* A committer that is dead behind its arrival did not do its part. */
static void a_dead_committer_is_blamed(void **state)
{
    (void)state;
    struct claim c = {
        .seq = 5, .descriptor = STAMP_A, .commit_at = offsetof(struct member, produced),
        .commit = 7, .committer = 2
    };
    struct wait wait = { &rig.members[2].produced, 3, 2, false, false, false };
    for (uint32_t p = 0; p < N; p++)
        arrive(p, 5);
    store_release64(&rig.members[2].produced, 6);
    assert_false(claim_holds(&rig.watch[0], &c));
    die(1);                                          /* no committer: it has done its part */
    /* what we wait for has come; go on */
    assert_int_equal(verdict_look(&rig.watch[0], &c, &wait, false), 1);
    wait.value = 7;
    assert_int_equal(verdict_look(&rig.watch[0], &c, &wait, false), 0);
    die(2);
    assert_int_equal(verdict_look(&rig.watch[0], &c, &wait, false), -EOWNERDEAD);
    expect_verdict(5, WHY_DIED, 2);
    store_release64(&rig.members[2].produced, 7);
    assert_true(claim_holds(&rig.watch[0], &c));
}

/* Where all but this rank have done their part, its deadline names whom it waits for, and ends
 * nothing once that has come. */
static void a_deadline_names_no_one_who_has_done_his_part(void **state)
{
    (void)state;
    struct claim c = {
        .seq = 5, .descriptor = STAMP_A,
        .commit_at = offsetof(struct member, folded), .commit = 7, .committer = -1
    };
    struct wait wait = { &rig.members[2].consumed, 3, 2, true, false, false };
    for (uint32_t p = 0; p < N; p++) {
        arrive(p, 5);
        store_release64(&rig.members[p].folded, p ? 7 : 6);
    }
    store_release64(&rig.members[2].consumed, 3);
    assert_int_equal(verdict_look(&rig.watch[0], &c, &wait, true), 1);
    assert_true(said() == 0);
    store_release64(&rig.members[2].consumed, 2);
    assert_int_equal(verdict_look(&rig.watch[0], &c, &wait, true), -ETIMEDOUT);
    expect_verdict(5, WHY_DEADLINE, 2);
}

static void a_reader_that_is_gone_needs_no_waiting(void **state)
{
    (void)state;
    struct claim c = {
        .seq = 5, .descriptor = STAMP_A, .commit_at = offsetof(struct member, produced),
        .commit = 7, .committer = 0
    };
    struct wait wait = { &rig.members[2].consumed, 3, 2, true, false, false };
    for (uint32_t p = 0; p < N; p++)
        arrive(p, 5);
    assert_int_equal(verdict_look(&rig.watch[0], &c, &wait, false), 0);
    die(2);
    assert_int_equal(verdict_look(&rig.watch[0], &c, &wait, false), 1);
    wait.leave = false;     /* but one whose word is needed is not done with because it is gone */
    assert_int_equal(verdict_look(&rig.watch[0], &c, &wait, false), 0);
    assert_true(said() == 0);
}

/* ---- what only one of them can see: pairs that differ ---- */

static struct claim complex_of(uint64_t seq)
{
    return (struct claim){
        .seq = seq, .descriptor = STAMP_A, .commit_at = offsetof(struct member, given),
        .commit = seq, .committer = -1
    };
}

static void a_private_difference_ends_it_for_all(void **state)
{
    (void)state;
    for (uint32_t finder = 0; finder < N; finder++)
        for (uint32_t first = 0; first < N; first++) {
            rig_close();
            rig_open(N, NULL);
            for (uint32_t p = 0; p < N; p++) {
                arrive(p, 5);
                if (p != finder)
                    /* all but the finder have done their part */
                    store_release64(&rig.members[p].given, 5);
            }
            uint32_t other = (finder + 1) % N;
            struct wait wait = { &rig.members[finder].given, 5, (int)finder, false, false, false };
            for (uint32_t i = 0; i < N; i++) {
                uint32_t p = (first + i) % N;
                struct claim c = complex_of(5);
                if (p == finder)
                    c.differs = other + 1;
                assert_false(claim_holds(&rig.watch[p], &c));
                int r = verdict_look(&rig.watch[p], &c, &wait, false);
                bool told = (finder + N - first) % N <= i;      /* has the finder looked by now? */
                assert_int_equal(r, told ? -EPROTO : 0);
                if (told)
                    expect_verdict(5, WHY_MISMATCH, other);
            }
            assert_int_equal(verdict_by(said()), finder);
        }
}

static void a_finder_that_dies_is_blamed_for_that(void **state)
{
    (void)state;
    struct claim c = complex_of(5);
    struct wait wait = { &rig.members[2].given, 5, 2, false, false, false };
    for (uint32_t p = 0; p < N; p++) {
        arrive(p, 5);
        if (p < 2)
            store_release64(&rig.members[p].given, 5);
    }
    die(2);                             /* it had found a difference, or not: it has not given */
    assert_int_equal(verdict_look(&rig.watch[0], &c, &wait, false), -EOWNERDEAD);
    expect_verdict(5, WHY_DIED, 2);
    c.differs = 1;
    /* whoever was first is right */
    assert_int_equal(verdict_look(&rig.watch[1], &c, &wait, false), -EOWNERDEAD);
}

/* A difference stands behind an abort, and before a death and a deadline; and a verdict of
 * another's is accepted as it is. */
static void a_difference_in_its_order(void **state)
{
    (void)state;
    static const struct { bool abort, dead, late; enum why why; uint32_t who; } rows[] = {
        { false, false, false, WHY_MISMATCH, 1 },
        { false, true, false, WHY_MISMATCH, 1 },
        { false, true, true, WHY_MISMATCH, 1 },
        { true, true, true, WHY_ABORT, 2 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        rig_close();
        rig_open(N, NULL);
        struct claim c = complex_of(5);
        struct wait wait = { &rig.members[1].given, UINT64_MAX, 1, false, false, false };
        c.differs = 2;
        for (uint32_t p = 0; p < N; p++)
            arrive(p, 5);
        if (rows[i].abort)
            store_release32(&rig.members[2].quit, QUIT_ABORT);
        if (rows[i].dead)
            die(2);
        assert_true(verdict_look(&rig.watch[0], &c, &wait, rows[i].late) < 0);
        expect_verdict(5, rows[i].why, rows[i].who);
    }
}

/* A table: what each rank is, whether the deadline has passed, and what must come out of rank
 * 0's look. */
static void reasons_in_their_order(void **state)
{
    (void)state;
    enum { LIVES, DIED, LEFT };
    static const struct {
        struct { int end; uint32_t quit; uint64_t arrived; } rank[N];
        bool late;
        enum why why;
        uint32_t who;
    } rows[] = {
        { { { LIVES, 0, 1 }, { LIVES, 0, 0 }, { LIVES, 0, 0 } }, false, WHY_NONE, 0 },
        { { { LIVES, 0, 1 }, { LIVES, 0, 1 }, { LIVES, 0, 0 } }, true, WHY_DEADLINE, 2 },
        { { { LIVES, 0, 1 }, { LIVES, 0, 0 }, { DIED, 0, 0 } }, true, WHY_DIED, 2 },
        { { { LIVES, 0, 1 }, { DIED, 0, 0 }, { DIED, 0, 0 } }, false, WHY_DIED, 1 },
        { { { LIVES, 0, 1 }, { LEFT, 0, 0 }, { DIED, 0, 0 } }, false, WHY_LEFT, 1 },
        { { { LIVES, 0, 1 }, { DIED, 0, 1 }, { LIVES, 0, 0 } }, false, WHY_NONE, 0 },
        { { { LIVES, 0, 1 }, { LIVES, QUIT_FREED, 0 }, { LIVES, 0, 0 } }, false, WHY_FREED, 1 },
        { { { LIVES, 0, 1 }, { DIED, QUIT_FREED, 0 }, { LIVES, 0, 0 } }, false, WHY_FREED, 1 },
        /* left, then its thread ended */
        { { { LIVES, 0, 1 }, { DIED, QUIT_LEFT, 0 }, { LIVES, 0, 0 } }, false, WHY_LEFT, 1 },
        /* by another thread */
        { { { LIVES, 0, 1 }, { LIVES, QUIT_LEFT, 0 }, { LIVES, 0, 0 } }, false, WHY_LEFT, 1 },
        { { { LIVES, 0, 1 }, { LIVES, QUIT_FREED, 1 }, { LIVES, 0, 0 } }, false, WHY_NONE, 0 },
        { { { LIVES, 0, 1 }, { LIVES, QUIT_LEFT, 1 }, { LIVES, 0, 0 } }, false, WHY_NONE, 0 },
        /* our own leaving ends nothing */
        { { { LIVES, QUIT_LEFT, 1 }, { LIVES, 0, 0 }, { LIVES, 0, 0 } }, false, WHY_NONE, 0 },
        /* our own abort does */
        { { { LIVES, QUIT_ABORT, 1 }, { LIVES, 0, 0 }, { LIVES, 0, 0 } }, false, WHY_ABORT, 0 },
        /* reached or not */
        { { { LIVES, 0, 1 }, { LIVES, QUIT_ABORT, 1 }, { LIVES, 0, 0 } }, false, WHY_ABORT, 1 },
        /* before death and deadline */
        { { { LIVES, 0, 1 }, { DIED, 0, 0 }, { LIVES, QUIT_ABORT, 0 } }, true, WHY_ABORT, 2 },
        { { { LIVES, 0, 1 }, { LIVES, QUIT_FREED, 0 }, { LIVES, QUIT_ABORT | QUIT_LEFT, 0 } },
          false, WHY_ABORT, 2 },
        { { { LIVES, 0, 1 }, { LIVES, QUIT_ABORT, 0 }, { LIVES, QUIT_INTERRUPT, 0 } }, false,
          WHY_ABORT, 1 },
        { { { LIVES, 0, 1 }, { LIVES, QUIT_ABORT | QUIT_INTERRUPT, 0 }, { LIVES, 0, 0 } }, false,
          WHY_INTERRUPT, 1 },
        /* 2: arrived with something else */
        { { { LIVES, 0, 1 }, { LIVES, 0, 2 }, { DIED, 0, 0 } }, true, WHY_MISMATCH, 1 },
        { { { LIVES, 0, 1 }, { DIED, 0, 0 }, { LIVES, 0, 2 } }, true, WHY_DIED, 1 },
        { { { LIVES, 0, 1 }, { LIVES, 0, 0 }, { DIED, 0, 2 } }, false, WHY_MISMATCH, 2 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        rig_close();
        rig_open(N, NULL);
        for (uint32_t p = 0; p < N; p++) {
            store_release32(&rig.members[p].quit, rows[i].rank[p].quit);
            if (rows[i].rank[p].arrived)
                arrive_as(p, 5, rows[i].rank[p].arrived);
            if (rows[i].rank[p].end == DIED)
                die(p);
            else if (rows[i].rank[p].end == LEFT)
                leave(p);
        }
        int r = look(0, 5, rows[i].late);
        if ((rows[i].why == WHY_NONE && (r != 0 || said() != 0))
            || (rows[i].why != WHY_NONE
                && (r != verdict_error(said()) || verdict_why(said()) != rows[i].why
                    || verdict_who(said()) != rows[i].who)))
            fail_msg("row %zu: result %d, reason %d, rank %u", i, r, (int)verdict_why(said()),
                     verdict_who(said()));
    }
}

static void everybody_finds_the_mismatch(void **state)
{
    (void)state;
    for (uint32_t other = 0; other < N; other++)
        for (uint32_t first = 0; first < N; first++) {
            for (uint32_t p = 0; p < N; p++)
                arrive_as(p, 5, p == other ? STAMP_B : STAMP_A);
            say(0);
            for (uint32_t i = 0; i < N; i++) {
                uint32_t p = (first + i) % N;
                struct claim c = {
                    .seq = 5, .descriptor = p == other ? STAMP_B : STAMP_A, .committer = -1
                };
                struct wait wait = {
                    &rig.members[0].arrival[1].seq, UINT64_MAX, 0, false, false, false
                };
                assert_int_equal(verdict_look(&rig.watch[p], &c, &wait, false), -EPROTO);
            }
            assert_int_equal(verdict_why(said()), WHY_MISMATCH);
            assert_true((verdict_who(said()) == other) != (verdict_by(said()) == other));
        }
}

/* Counts of 2^29 and more travel as a hash; two with the same hash are told apart by the whole
 * value beside it. */
static void counts_with_the_same_hash_differ(void **state)
{
    (void)state;
    enum { TRIED = 1 << 17 };
    uint64_t *by_hash = zeroed(TRIED, sizeof *by_hash), one = 0, two = 0, random = 1;
    for (uint64_t i = 0; !two && i < (UINT64_C(1) << 24); i++) {
        uint64_t count = STAMP_HASHED + team_random(&random) % (UINT64_C(1) << 40),
                 stamp = fingerprint_make(KIND_ALL_REDUCE, TUTTI_U8, TUTTI_SUM, 0, count);
        uint64_t *seat = &by_hash[stamp % TRIED];
        if (*seat && fingerprint_make(KIND_ALL_REDUCE, TUTTI_U8, TUTTI_SUM, 0, *seat) == stamp) {
            one = *seat;
            two = count;
        }
        *seat = count;
    }
    free(by_hash);
    assert_true(two != 0 && one != two);
    uint64_t stamp = fingerprint_make(KIND_ALL_REDUCE, TUTTI_U8, TUTTI_SUM, 0, one);
    for (uint32_t p = 0; p < N; p++) {
        store_relaxed64(&rig.members[p].arrival[1].payload[COUNT_WORD], p == 2 ? two : one);
        arrive_as(p, 5, stamp);
    }
    struct claim c = { .seq = 5, .descriptor = stamp, .count = one, .committer = -1 };
    struct wait wait = { &rig.members[2].arrival[1].seq, UINT64_MAX, 2, false, false, false };
    assert_false(claim_holds(&rig.watch[0], &c));
    assert_int_equal(verdict_look(&rig.watch[0], &c, &wait, false), -EPROTO);
    expect_verdict(5, WHY_MISMATCH, 2);
}

static void a_quit_is_told_in_its_order(void **state)
{
    (void)state;
    verdict_quit(&rig.watch[1], QUIT_LEFT);
    verdict_quit(&rig.watch[1], QUIT_ABORT);
    /* or-ed, never stored over */
    assert_int_equal(load_acquire32(&rig.members[1].quit), QUIT_LEFT | QUIT_ABORT);
    assert_int_equal(load_acquire32(&rig.slot->news), 2);
    assert_int_equal(rig.wakes, 2);
    assert_ptr_equal(rig.woken[1], &rig.slot->news);
    assert_true(load_acquire32(&rig.watch[1].attention) & ATTENTION_BROKEN);
}

/* Who arrives after it finds it failed, though all have arrived then, and whoever aborted has not
 * looked yet. */
static void an_abort_fails_what_is_under_way(void **state)
{
    (void)state;
    for (int interrupt = 0; interrupt < 2; interrupt++)
        for (int stale = 0; stale < 2; stale++) {
            rig_close();
            rig_open(N, NULL);
            struct claim c = claim_of(5);
            arrive(0, 5);
            if (stale)
                say(verdict_make(4, WHY_DEADLINE, 1, 2));   /* of an operation that all have left */
            verdict_quit(&rig.watch[0], interrupt ? QUIT_INTERRUPT : QUIT_ABORT);
            expect_verdict(5, interrupt ? WHY_INTERRUPT : WHY_ABORT, 0);
            assert_int_equal(verdict_state(said()), VERDICT_CONFIRMED);
            for (uint32_t p = 1; p < N; p++)
                arrive(p, 5);
            for (uint32_t p = 0; p < N; p++)
                assert_int_equal(verdict_complete(&rig.watch[p], &c), -ECANCELED);
        }
}

/* All have arrived, or nothing is under way: what has come to its end has. Nor is another's verdict
 * written over. */
static void an_abort_fails_nothing_that_is_over(void **state)
{
    (void)state;
    struct claim c = claim_of(5);
    verdict_quit(&rig.watch[0], QUIT_ABORT);
    assert_true(said() == 0);
    for (uint32_t p = 0; p < N; p++)
        arrive(p, 5);
    verdict_quit(&rig.watch[0], QUIT_ABORT);
    assert_true(said() == 0);
    assert_int_equal(verdict_complete(&rig.watch[1], &c), 0);
    arrive(0, 6);
    for (int confirmed = 0; confirmed < 2; confirmed++) {
        uint64_t other = verdict_make(6, WHY_DIED, 1, 2);
        other = confirmed ? verdict_confirmed(other) : other;
        say(other);
        verdict_quit(&rig.watch[0], QUIT_ABORT);
        assert_true(said() == other);
    }
}

static void a_writer_leaves_the_sleepers_alone(void **state)
{
    (void)state;
    struct claim c = claim_of(5);
    fetch_add32(&rig.members[1].sleepers, 2);
    journal_arrive(&rig.watch[1], &c);
    watch_raise(&rig.watch[1], &rig.members[1].produced, 4);
    assert_int_equal(load_acquire32(&rig.members[1].sleepers), 2);
    assert_int_equal(rig.wakes, 2);
    /* the word of its parity */
    assert_ptr_equal(rig.woken[0], low_half(&rig.members[1].arrival[1].seq));
    assert_ptr_equal(rig.woken[1], low_half(&rig.members[1].produced));
}

/* ---- device memory: arrival is not all ---- */

static void arrive_with_device(uint32_t p, uint64_t seq)
{
    store_relaxed32(&rig.slot->devices, 1);
    store_relaxed64(&rig.members[p].arrival[seq & 1].more[DEVICE_WORD], seq);
    arrive(p, seq);
}

static void place(uint32_t p, uint64_t seq) { store_release64(&rig.members[p].placed, seq); }

static bool holds(uint32_t p, uint64_t seq)
{
    struct claim c = claim_of(seq);
    return claim_holds(&rig.watch[p], &c);
}

static void with_a_device_all_must_have_placed(void **state)
{
    (void)state;
    for (uint64_t seq = 5; seq < 9; seq++) {
        bool device = seq != 7;             /* in 7 nobody has one, though the comm has seen some */
        for (uint32_t p = 0; p < N; p++) {
            assert_false(holds(0, seq));
            if (device && p == seq % N)
                arrive_with_device(p, seq);
            else
                arrive(p, seq);
        }
        assert_true(holds(0, seq) == !device);
        for (uint32_t p = 0; device && p < N; p++) {
            assert_false(holds(1, seq));
            assert_int_equal(look(1, seq, false), 0);
            place(p, seq);
        }
        assert_true(holds(2, seq));
        assert_int_equal(complete(2, seq), 0);
    }
}

/* A host rank has come and died: nothing is missing of it until a device rank comes, which asks
 * more of all. */
static void who_died_before_its_result_was_placed(void **state)
{
    (void)state;
    arrive(0, 5);
    arrive(1, 5);
    die(1);
    assert_int_equal(look(0, 5, false), 0);
    assert_true(said() == 0);
    arrive_with_device(2, 5);
    assert_int_equal(look(0, 5, false), -EOWNERDEAD);
    expect_verdict(5, WHY_DIED, 1);
    assert_int_equal(look(2, 5, false), -EOWNERDEAD);
    rig_close();
    rig_open(N, NULL);
    arrive(0, 5);
    arrive(1, 5);
    arrive_with_device(2, 5);
    place(1, 5);
    die(1);
    assert_int_equal(look(0, 5, false), 0);          /* it had done all it had to */
    place(0, 5);
    place(2, 5);
    assert_int_equal(look(0, 5, true), 1);
    assert_int_equal(complete(2, 5), 0);
    assert_true(said() == 0);
}

static void a_failed_device_is_a_reason(void **state)
{
    (void)state;
    arrive(0, 5);
    arrive(1, 5);
    arrive_with_device(2, 5);
    place(0, 5);
    place(1, 5);
    verdict_quit(&rig.watch[2], QUIT_DEVICE);
    assert_true(load_acquire32(&rig.watch[2].attention) & ATTENTION_BROKEN);
    assert_int_equal(look(0, 5, true), -EIO);       /* before the deadline, which has passed, too */
    expect_verdict(5, WHY_DEVICE, 2);
    assert_int_equal(look(1, 5, false), -EIO);
}

/* Whoever waits for its own device is what its deadline names, whatever others have yet to do. */
static void a_late_device_names_its_own_rank(void **state)
{
    (void)state;
    struct op op = { .watch = &rig.watch[1], .claim = claim_of(5) };
    for (uint32_t p = 0; p < N; p++)
        arrive_with_device(p, 5);
    assert_int_equal(watch_poll(&op), WAITING);
    assert_int_equal(verdict_look(&rig.watch[1], &op.claim, &op.wait, false), 0);
    assert_int_equal(verdict_look(&rig.watch[1], &op.claim, &op.wait, true), -ETIMEDOUT);
    expect_verdict(5, WHY_DEADLINE, 1);
}

/* The same, with a word that tells when it is ready: which ends the wait, and nothing of
 * the operation. */
static void a_late_disk_names_its_own_rank(void **state)
{
    (void)state;
    shared64 ends = 0;
    struct op op = { .watch = &rig.watch[1], .claim = claim_of(5) };
    op.claim.commit_at = offsetof(struct member, given);
    op.claim.commit = 5;
    for (uint32_t p = 0; p < N; p++)
        arrive(p, 5);
    assert_int_equal(watch_own(&op, &ends, 1), WAITING);
    assert_int_equal(verdict_look(&rig.watch[1], &op.claim, &op.wait, false), 0);
    store_release64(&ends, 1);
    assert_int_equal(verdict_look(&rig.watch[1], &op.claim, &op.wait, false), 1);
    assert_true(said() == 0);
    assert_int_equal(watch_own(&op, &ends, 2), WAITING);
    assert_int_equal(verdict_look(&rig.watch[1], &op.claim, &op.wait, true), -ETIMEDOUT);
    expect_verdict(5, WHY_DEADLINE, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_word_says_what_was_put_in), CASE(numbers_are_compared_around_their_end),
        CASE(each_reason_has_its_error), CASE(a_dead_proposers_proposal_is_decided),
        CASE(a_proposal_is_withdrawn_where_all_are_there), CASE(a_confirmed_verdict_is_final),
        CASE(a_death_without_a_mark_is_passed_on), CASE(a_stale_proposal_is_cleared),
        CASE(a_later_proposal_means_success), CASE(words_near_the_end_of_the_number),
        CASE(a_dead_rank_that_did_its_part_is_not_blamed), CASE(a_dead_committer_is_blamed),
        CASE(a_reader_that_is_gone_needs_no_waiting),
        CASE(a_deadline_names_no_one_who_has_done_his_part),
        CASE(a_private_difference_ends_it_for_all), CASE(a_finder_that_dies_is_blamed_for_that),
        CASE(a_difference_in_its_order), CASE(reasons_in_their_order),
        CASE(everybody_finds_the_mismatch), CASE(counts_with_the_same_hash_differ),
        CASE(a_quit_is_told_in_its_order), CASE(a_writer_leaves_the_sleepers_alone),
        CASE(an_abort_fails_what_is_under_way), CASE(an_abort_fails_nothing_that_is_over),
        CASE(with_a_device_all_must_have_placed), CASE(who_died_before_its_result_was_placed),
        CASE(a_failed_device_is_a_reason), CASE(a_late_device_names_its_own_rank),
        CASE(a_late_disk_names_its_own_rank),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
