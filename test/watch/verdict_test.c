/* ctest: timeout=300 labels=faults,tsan serial */
/* The verdict by hand: a slot, its members and their marks stand in plain memory, and the words that a dead or slow rank would have
 * left there are written by the test. So each rule of the protocol has its own small case, without a process and without luck; two
 * races at the end need luck, and have many tries. */
#include "watch/verdict.h"

#include "base/clock.h"
#include "support/team.h"
#include "watch/death.h"
#include "watch/drive.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { N = 3, MOST = 130, STAMP_A = 1, STAMP_B = 2 };

static struct rig {
    struct slot *slot;
    struct member *members;
    struct seat *seats;
    struct watch *watch;              /* [size] as each rank sees it */
    uint32_t size;
    struct arena arena;
    struct arena_header header;
    struct wait_ways ways;
    uint64_t now;
    /* what the injected sleep saw and does */
    struct futex_word slept[FUTEX_WORDS];
    int slept_words, sleeps;
    void (*during)(struct rig *rig);
    shared32 *woken[64];
    int wakes, wakes_when_looked;
    int sleep_result;
} rig;

static uint64_t rig_now(void *arg)
{
    (void)arg;
    return rig.now;
}

static int rig_sleep(void *arg, const struct futex_word *words, int n, uint64_t ns)
{
    (void)arg;
    memcpy(rig.slept, words, (size_t)n * sizeof *words);
    rig.slept_words = n;
    rig.now += ns;
    if (++rig.sleeps > 200)
        abort();                                     /* a wait that nothing ends */
    if (n > 1 && rig.sleep_result)
        return rig.sleep_result;
    if (rig.during)
        rig.during(&rig);
    return 0;
}

static int rig_wake(void *arg, shared32 *word, int n)
{
    (void)arg;
    (void)n;
    if (rig.wakes < 64)
        rig.woken[rig.wakes++] = word;
    return 0;
}

static void rig_yield(void *arg) { (void)arg; }

static void *zeroed(size_t n, size_t bytes)
{
    void *at = NULL;
    if (posix_memalign(&at, 128, n * bytes))
        abort();
    memset(at, 0, n * bytes);
    return at;
}

static shared32 *mark(uint32_t p) { return process_mark_word(&rig.seats[p].mark); }

static void rig_open(uint32_t size, const struct wait_ways *ways)
{
    memset(&rig, 0, sizeof rig);
    rig.size = size;
    rig.header.size = RANKS_MAX;                     /* too many for a descriptor of each */
    rig.arena.header = &rig.header;
    rig.slot = zeroed(1, sizeof *rig.slot + MOST * sizeof(uint32_t));
    rig.members = zeroed(size, sizeof *rig.members);
    rig.seats = zeroed(size, sizeof *rig.seats);
    rig.watch = zeroed(size, sizeof *rig.watch);
    rig.ways = ways ? *ways : (struct wait_ways){ rig_now, rig_sleep, rig_wake, rig_yield, NULL };
    for (uint32_t p = 0; p < size; p++) {
        struct watch *w = &rig.watch[p];
        store_release32(mark(p), (1000 + p) | FUTEX_WAITERS);        /* held: nobody looks whether there is such a thread */
        store_release32(&rig.seats[p].state, SEAT_JOINED);
        process_self(&rig.seats[p].id);
        *w = (struct watch){ .slot = rig.slot, .ways = &rig.ways, .arena = &rig.arena, .timeout_ns = -1, .warn_ns = -1, .name = "rig" };
        watch_begin(w, rig.members, p, size);
        w->seats = zeroed(size, sizeof *w->seats);
        w->seen = zeroed(size, sizeof *w->seen);
        w->gone = zeroed(size, 1);
        w->lost = zeroed(size, 1);
        for (uint32_t q = 0; q < size; q++)
            w->seats[q] = &rig.seats[q];
    }
}

static void rig_close(void)
{
    for (uint32_t p = 0; p < rig.size; p++) {
        free(rig.watch[p].seats);
        free(rig.watch[p].seen);
        free(rig.watch[p].gone);
        free(rig.watch[p].lost);
    }
    free(rig.watch);
    free(rig.seats);
    free((void *)rig.members);
    free((void *)rig.slot);
}

static int setup(void **state)
{
    (void)state;
    rig_open(N, NULL);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    rig_close();
    return 0;
}

static struct claim claim_of(uint64_t seq) { return (struct claim){ .seq = seq, .descriptor = STAMP_A, .committer = -1 }; }

static void arrive_as(uint32_t p, uint64_t seq, uint64_t descriptor)
{
    struct arrival *a = &rig.members[p].arrival[seq & 1];
    store_relaxed64(&a->descriptor, descriptor);
    store_release64(&a->seq, seq);
}

static void arrive(uint32_t p, uint64_t seq) { arrive_as(p, seq, STAMP_A); }
static void die(uint32_t p) { store_release32(mark(p), FUTEX_OWNER_DIED | FUTEX_WAITERS); }

static void leave(uint32_t p)
{
    store_release32(&rig.seats[p].state, SEAT_LEFT);
    store_release32(mark(p), 0);
}

static void say(uint64_t v) { store_release64(&rig.slot->verdict, v); }
static uint64_t said(void) { return load_acquire64(&rig.slot->verdict); }

/* p looks, waiting for the first who is not there. */
static int look(uint32_t p, uint64_t seq, bool late)
{
    struct claim c = claim_of(seq);
    struct wait wait = { &rig.members[p].arrival[seq & 1].seq, UINT64_MAX, -1, false, false, false };
    for (uint32_t q = 0; q < rig.size; q++)
        if (load_acquire64(&rig.members[q].arrival[seq & 1].seq) < seq) {
            wait = wait_for(&rig.members[q].arrival[seq & 1].seq, seq, q);
            break;
        }
    return verdict_look(&rig.watch[p], &c, &wait, late);
}

static int complete(uint32_t p, uint64_t seq)
{
    struct claim c = claim_of(seq);
    return verdict_complete(&rig.watch[p], &c);
}

static void expect_verdict(uint64_t seq, enum why why, uint32_t who)
{
    assert_int_equal(verdict_state(said()), VERDICT_CONFIRMED);
    assert_int_equal((uint32_t)said() & VERDICT_OP_MASK, seq & VERDICT_OP_MASK);
    assert_int_equal(verdict_why(said()), why);
    assert_int_equal(verdict_who(said()), who);
}

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
        assert_true((uint32_t)v != 0);               /* sleepers wait for the low half to be other than 0 */
    }
}

static void numbers_are_compared_around_their_end(void **state)
{
    (void)state;
    const uint64_t around[] = { UINT64_C(1) << 29, UINT64_C(1) << 30, UINT64_C(1) << 31, UINT64_C(1) << 32, UINT64_C(3) << 30, UINT64_C(1) << 40 };
    for (size_t i = 0; i < sizeof around / sizeof around[0]; i++)
        for (int64_t a = -2; a <= 2; a++)
            for (int64_t b = -2; b <= 2; b++) {
                uint64_t v = verdict_make(around[i] + (uint64_t)a, WHY_DIED, 0, 0);
                assert_int_equal(verdict_after(v, around[i] + (uint64_t)b), a - b);
                assert_int_equal(verdict_after(verdict_confirmed(v), around[i] + (uint64_t)b), a - b);
            }
}

static void each_reason_has_its_error(void **state)
{
    (void)state;
    static const int error[] = { [WHY_DIED] = -EOWNERDEAD, [WHY_LEFT] = -EOWNERDEAD, [WHY_FREED] = -EOWNERDEAD, [WHY_DEADLINE] = -ETIMEDOUT,
                                 [WHY_MISMATCH] = -EPROTO, [WHY_ABORT] = -ECANCELED, [WHY_DEADLOCK] = -EDEADLK, [WHY_INTERRUPT] = -ECANCELED,
                                 [WHY_DEVICE] = -EIO };
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
    assert_int_equal(look(0, 5, false), -ETIMEDOUT); /* his reason stands, though we would have found another */
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

/* Who died without a mark only the finder has asked the system about; the verdict tells the others, and it alone must be believed. */
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
    say(verdict_make(5, WHY_DIED, 1, 2));            /* all had reached 5; its proposer died before it withdrew */
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
    struct claim c = { .seq = 5, .descriptor = STAMP_A, .commit_at = offsetof(struct member, produced), .commit = 7, .committer = 2 };
    struct wait wait = { &rig.members[2].produced, 3, 2, false, false, false };
    for (uint32_t p = 0; p < N; p++)
        arrive(p, 5);
    store_release64(&rig.members[2].produced, 6);
    assert_false(claim_holds(&rig.watch[0], &c));
    die(1);                                          /* no committer: it has done its part */
    assert_int_equal(verdict_look(&rig.watch[0], &c, &wait, false), 1);      /* what we wait for has come; go on */
    wait.value = 7;
    assert_int_equal(verdict_look(&rig.watch[0], &c, &wait, false), 0);
    die(2);
    assert_int_equal(verdict_look(&rig.watch[0], &c, &wait, false), -EOWNERDEAD);
    expect_verdict(5, WHY_DIED, 2);
    store_release64(&rig.members[2].produced, 7);
    assert_true(claim_holds(&rig.watch[0], &c));
}

/* Where all but this rank have done their part, its deadline names whom it waits for, and ends nothing once that has come. */
static void a_deadline_names_no_one_who_has_done_his_part(void **state)
{
    (void)state;
    struct claim c = { .seq = 5, .descriptor = STAMP_A, .commit_at = offsetof(struct member, folded), .commit = 7, .committer = -1 };
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
    struct claim c = { .seq = 5, .descriptor = STAMP_A, .commit_at = offsetof(struct member, produced), .commit = 7, .committer = 0 };
    struct wait wait = { &rig.members[2].consumed, 3, 2, true, false, false };
    for (uint32_t p = 0; p < N; p++)
        arrive(p, 5);
    assert_int_equal(verdict_look(&rig.watch[0], &c, &wait, false), 0);
    die(2);
    assert_int_equal(verdict_look(&rig.watch[0], &c, &wait, false), 1);
    wait.leave = false;                              /* but one whose word is needed is not done with because it is gone */
    assert_int_equal(verdict_look(&rig.watch[0], &c, &wait, false), 0);
    assert_true(said() == 0);
}

/* ---- the operation has succeeded, and who lent its buffers waits for their readers ---- */

static struct wait exit_of(uint32_t reader) { return wait_for_or_gone(&rig.members[reader].consumed, 9, reader); }

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
    assert_int_equal(verdict_look(w, &c, &wait, true), 0);           /* no deadline, */
    verdict_quit(&rig.watch[1], QUIT_ABORT);
    verdict_quit(&rig.watch[0], QUIT_INTERRUPT);
    assert_int_equal(verdict_look(w, &c, &wait, true), 0);           /* no abort, not our own, */
    die(1);
    assert_int_equal(verdict_look(w, &c, &wait, true), 0);           /* nobody else's death, */
    say(verdict_confirmed(verdict_make(6, WHY_ABORT, 1, 1)));
    assert_int_equal(verdict_look(w, &c, &wait, true), 0);           /* and no later verdict ends it, */
    say(verdict_make(5, WHY_DEADLINE, 1, 2));
    assert_int_equal(verdict_look(w, &c, &wait, true), 0);           /* a proposal for it is withdrawn, */
    assert_true(said() == 0 && w->over && w->failed == 0);
    store_release64(&rig.members[2].consumed, 8);
    assert_int_equal(verdict_look(w, &c, &wait, false), 0);          /* and not quite is not yet */
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

/* Alive, but past it: it has freed the comm, left, or come to a later operation. An abort, or where it stands, say nothing of its reading. */
static void an_exit_ends_when_the_reader_is_past_it(void **state)
{
    (void)state;
    static const struct { uint32_t quit; uint64_t arrived; int gives; } rows[] = {
        { 0, 5, 0 }, { QUIT_ABORT, 5, 0 }, { QUIT_INTERRUPT, 5, 0 }, { QUIT_FREED, 5, 1 }, { QUIT_LEFT, 5, 1 }, { 0, 6, 1 }, { QUIT_ABORT, 6, 1 },
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

/* What is waited for now is no exit: with the claim fulfilled nobody has to wait for anything else. */
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

/* An exit sleeps whole slices, also past its deadline, on words as they are: a verdict on a later operation and news of an abort stay. */
static void an_exit_sleeps(void **state)
{
    (void)state;
    struct watch *w = &rig.watch[0];
    struct futex_word words[FUTEX_WORDS];
    struct drive_sleep sleep;
    struct op op = { .watch = w, .claim = claim_of(5), .wait = exit_of(2), .timeout_ns = 1000, .slices = 4 };
    for (uint32_t p = 0; p < N; p++)
        arrive(p, 5);
    rig.now = 1;
    drive_started(&op);
    rig.now = 1000000;
    verdict_quit(&rig.watch[1], QUIT_ABORT);
    uint64_t later = verdict_confirmed(verdict_make(6, WHY_ABORT, 1, 1));
    say(later);
    assert_int_equal(drive_look(&op), 0);
    assert_int_equal(drive_slice(&op), 250000000);
    int n = drive_gather(&op, words, FUTEX_WORDS, &sleep);
    assert_int_equal(n, 5);
    for (int i = 0; i < n; i++)
        assert_int_equal(load_acquire32(words[i].word), words[i].seen);      /* nothing there that ends the sleep at once */
    assert_ptr_equal(words[0].word, low_half(&rig.members[2].consumed));
    assert_ptr_equal(words[1].word, low_half(&rig.slot->verdict));
    assert_ptr_equal(words[2].word, &rig.slot->news);
    drive_retire(&rig.ways, &sleep);
    /* The same wait before the claim is fulfilled: each of them ends it. */
    struct op before = { .watch = w, .claim = claim_of(7), .wait = exit_of(2), .timeout_ns = 1000000000, .slices = 4 };
    say(0);
    store_release32(&rig.members[1].quit, 0);
    assert_int_equal(drive_look(&before), 0);
    assert_false(w->over);
    say(later);
    fetch_add32(&rig.slot->news, 1);
    drive_gather(&before, words, FUTEX_WORDS, &sleep);
    assert_int_equal(words[1].seen, 0);
    assert_true(words[2].seen != load_acquire32(&rig.slot->news));
    drive_retire(&rig.ways, &sleep);
}

/* ---- what only one of them can see: pairs that differ ---- */

static struct claim pairs_of(uint64_t seq)
{
    return (struct claim){ .seq = seq, .descriptor = STAMP_A, .commit_at = offsetof(struct member, given), .commit = seq, .committer = -1 };
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
                    store_release64(&rig.members[p].given, 5);       /* all but the finder have done their part */
            }
            uint32_t other = (finder + 1) % N;
            struct wait wait = { &rig.members[finder].given, 5, (int)finder, false, false, false };
            for (uint32_t i = 0; i < N; i++) {
                uint32_t p = (first + i) % N;
                struct claim c = pairs_of(5);
                if (p == finder)
                    c.differs = other + 1;
                assert_false(claim_holds(&rig.watch[p], &c));
                int r = verdict_look(&rig.watch[p], &c, &wait, false);
                bool told = (finder + N - first) % N <= i;           /* has the finder looked by now? */
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
    struct claim c = pairs_of(5);
    struct wait wait = { &rig.members[2].given, 5, 2, false, false, false };
    for (uint32_t p = 0; p < N; p++) {
        arrive(p, 5);
        if (p < 2)
            store_release64(&rig.members[p].given, 5);
    }
    die(2);                                          /* it had found a difference, or not: it has not given */
    assert_int_equal(verdict_look(&rig.watch[0], &c, &wait, false), -EOWNERDEAD);
    expect_verdict(5, WHY_DIED, 2);
    c.differs = 1;
    assert_int_equal(verdict_look(&rig.watch[1], &c, &wait, false), -EOWNERDEAD);    /* whoever was first is right */
}

/* A difference stands behind an abort, and before a death and a deadline; and a verdict of another's is accepted as it is. */
static void a_difference_in_its_order(void **state)
{
    (void)state;
    static const struct { bool abort, dead, late; enum why why; uint32_t who; } rows[] = {
        { false, false, false, WHY_MISMATCH, 1 }, { false, true, false, WHY_MISMATCH, 1 }, { false, true, true, WHY_MISMATCH, 1 },
        { true, true, true, WHY_ABORT, 2 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        rig_close();
        rig_open(N, NULL);
        struct claim c = pairs_of(5);
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

/* A table: what each rank is, whether the deadline has passed, and what must come out of rank 0's look. */
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
        { { { LIVES, 0, 1 }, { DIED, QUIT_LEFT, 0 }, { LIVES, 0, 0 } }, false, WHY_LEFT, 1 },     /* left, then its thread ended */
        { { { LIVES, 0, 1 }, { LIVES, QUIT_LEFT, 0 }, { LIVES, 0, 0 } }, false, WHY_LEFT, 1 },    /* by another thread */
        { { { LIVES, 0, 1 }, { LIVES, QUIT_FREED, 1 }, { LIVES, 0, 0 } }, false, WHY_NONE, 0 },
        { { { LIVES, 0, 1 }, { LIVES, QUIT_LEFT, 1 }, { LIVES, 0, 0 } }, false, WHY_NONE, 0 },
        { { { LIVES, QUIT_LEFT, 1 }, { LIVES, 0, 0 }, { LIVES, 0, 0 } }, false, WHY_NONE, 0 },    /* our own leaving ends nothing */
        { { { LIVES, QUIT_ABORT, 1 }, { LIVES, 0, 0 }, { LIVES, 0, 0 } }, false, WHY_ABORT, 0 },  /* our own abort does */
        { { { LIVES, 0, 1 }, { LIVES, QUIT_ABORT, 1 }, { LIVES, 0, 0 } }, false, WHY_ABORT, 1 },  /* reached or not */
        { { { LIVES, 0, 1 }, { DIED, 0, 0 }, { LIVES, QUIT_ABORT, 0 } }, true, WHY_ABORT, 2 },    /* before death and deadline */
        { { { LIVES, 0, 1 }, { LIVES, QUIT_FREED, 0 }, { LIVES, QUIT_ABORT | QUIT_LEFT, 0 } }, false, WHY_ABORT, 2 },
        { { { LIVES, 0, 1 }, { LIVES, QUIT_ABORT, 0 }, { LIVES, QUIT_INTERRUPT, 0 } }, false, WHY_ABORT, 1 },
        { { { LIVES, 0, 1 }, { LIVES, QUIT_ABORT | QUIT_INTERRUPT, 0 }, { LIVES, 0, 0 } }, false, WHY_INTERRUPT, 1 },
        { { { LIVES, 0, 1 }, { LIVES, 0, 2 }, { DIED, 0, 0 } }, true, WHY_MISMATCH, 1 },          /* 2: arrived with something else */
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
            || (rows[i].why != WHY_NONE && (r != verdict_error(said()) || verdict_why(said()) != rows[i].why || verdict_who(said()) != rows[i].who)))
            fail_msg("row %zu: result %d, reason %d, rank %u", i, r, (int)verdict_why(said()), verdict_who(said()));
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
                struct claim c = { .seq = 5, .descriptor = p == other ? STAMP_B : STAMP_A, .committer = -1 };
                struct wait wait = { &rig.members[0].arrival[1].seq, UINT64_MAX, 0, false, false, false };
                assert_int_equal(verdict_look(&rig.watch[p], &c, &wait, false), -EPROTO);
            }
            assert_int_equal(verdict_why(said()), WHY_MISMATCH);
            assert_true((verdict_who(said()) == other) != (verdict_by(said()) == other));
        }
}

/* Counts of 2^29 and more travel as a hash; two with the same hash are told apart by the whole value beside it. */
static void counts_with_the_same_hash_differ(void **state)
{
    (void)state;
    enum { TRIED = 1 << 17 };
    uint64_t *by_hash = zeroed(TRIED, sizeof *by_hash), one = 0, two = 0, random = 1;
    for (uint64_t i = 0; !two && i < (UINT64_C(1) << 24); i++) {
        uint64_t count = STAMP_HASHED + team_random(&random) % (UINT64_C(1) << 40), stamp = stamp_make(KIND_ALL_REDUCE, TUTTI_U8, TUTTI_SUM, 0, count);
        uint64_t *seat = &by_hash[stamp % TRIED];
        if (*seat && stamp_make(KIND_ALL_REDUCE, TUTTI_U8, TUTTI_SUM, 0, *seat) == stamp) {
            one = *seat;
            two = count;
        }
        *seat = count;
    }
    free(by_hash);
    assert_true(two != 0 && one != two);
    uint64_t stamp = stamp_make(KIND_ALL_REDUCE, TUTTI_U8, TUTTI_SUM, 0, one);
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
    assert_int_equal(load_acquire32(&rig.members[1].quit), QUIT_LEFT | QUIT_ABORT);      /* or-ed, never stored over */
    assert_int_equal(load_acquire32(&rig.slot->news), 2);
    assert_int_equal(rig.wakes, 2);
    assert_ptr_equal(rig.woken[1], &rig.slot->news);
    assert_true(load_acquire32(&rig.watch[1].attention) & ATTENTION_BROKEN);
}

/* Who arrives after it finds it failed, though all have arrived then, and whoever aborted has not looked yet. */
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
                say(verdict_make(4, WHY_DEADLINE, 1, 2));            /* of an operation that all have left */
            verdict_quit(&rig.watch[0], interrupt ? QUIT_INTERRUPT : QUIT_ABORT);
            expect_verdict(5, interrupt ? WHY_INTERRUPT : WHY_ABORT, 0);
            assert_int_equal(verdict_state(said()), VERDICT_CONFIRMED);
            for (uint32_t p = 1; p < N; p++)
                arrive(p, 5);
            for (uint32_t p = 0; p < N; p++)
                assert_int_equal(verdict_complete(&rig.watch[p], &c), -ECANCELED);
        }
}

/* All have arrived, or nothing is under way: what has come to its end has. Nor is another's verdict written over. */
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
    watch_arrive(&rig.watch[1], &c);
    watch_raise(&rig.watch[1], &rig.members[1].produced, 4);
    assert_int_equal(load_acquire32(&rig.members[1].sleepers), 2);
    assert_int_equal(rig.wakes, 2);
    assert_ptr_equal(rig.woken[0], low_half(&rig.members[1].arrival[1].seq));            /* the word of its parity */
    assert_ptr_equal(rig.woken[1], low_half(&rig.members[1].produced));
}

/* ---- the wait around it ---- */

static int barrier_advance(struct op *op)
{
    if (!op->site) {                                 /* no site here: it says whether we have arrived */
        op->site = 1;
        watch_arrive(op->watch, &op->claim);
    }
    return watch_all_arrived(op);
}

static struct op op_of(uint32_t p, uint64_t seq)
{
    return (struct op){ .watch = &rig.watch[p], .claim = claim_of(seq), .advance = barrier_advance, .timeout_ns = -1 };
}

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
    assert_true(sleeps_on(mark(1), 1001 | FUTEX_WAITERS));           /* also of one that has arrived: it may fail the operation's next phase */
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

/* The kernel woke this sleeper alone. It finds its operation complete, and still wakes the others on that mark. */
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
    assert_true(sleeps_on(mark(1), 1001 | FUTEX_WAITERS));           /* its neighbours; the others have theirs */
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
    r->now += r->sleeps == 2 ? UINT64_C(3600000000000) : 0;          /* the machine was suspended for an hour */
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

/* ---- races: ranks as threads, on the kernel's own futexes ---- */

/* Both threads leave it within some ten nanoseconds of each other, where both have a CPU: a barrier of the C library is far too coarse. */
struct line { shared64 came; };

/* How long each of the races runs at most; how many tries that is depends on the machine. */
static uint64_t race_ns(void)
{
    const char *prove = getenv("TUTTI_PROVE");
    return (prove && *prove == '1' ? 100 : 4) * UINT64_C(1000000000);
}

static uint64_t race_rounds(void)
{
    const char *prove = getenv("TUTTI_PROVE");
    return (uint64_t)team_many("TUTTI_TEST_ROUNDS", prove && *prove == '1' ? 20000000 : 400000, 3000);
}

static void line_up(struct line *line, uint64_t nth)
{
    fetch_add64(&line->came, 1);
    for (uint64_t i = 1; load_acquire64(&line->came) < 2 * nth; i++)
        if (i % 20000 == 0)
            sched_yield();
        else
            cpu_pause();
}

struct race { struct line line; uint64_t end_ns; bool proposed; int result[2]; uint64_t rounds, both_ways[2], split; };
static struct race race;

static void race_reset(uint64_t k)
{
    say(race.proposed ? verdict_make(k, WHY_DEADLINE, 1, 0) : 0);
    for (uint32_t p = 0; p < 2; p++) {
        store_release32(&rig.watch[p].attention, 0);
        rig.watch[p].failed = 0;
    }
}

static void race_round(uint32_t me, uint64_t k, uint64_t *random)
{
    struct claim c = claim_of(k);
    struct op op = op_of(me, k);
    for (uint64_t i = team_random(random) % (me ? 24 : 40); i; i--)
        cpu_pause();
    if (me == 0 || race.proposed) {
        race.result[me] = drive_to_end(&op);         /* arrives; the other is there; looks at V */
        return;
    }
    op.advance(&op);                                 /* arrives, and its deadline has passed at once */
    struct wait wait = { &rig.members[0].arrival[k & 1].seq, k, 0, false, false, false };
    int r = verdict_look(&rig.watch[1], &c, &wait, true);
    race.result[1] = r < 0 ? r : verdict_complete(&rig.watch[1], &c);
}

static void *race_run(void *arg)
{
    uint32_t me = arg != NULL;
    uint64_t random = 77 + me;
    for (uint64_t k = 1; k <= race.rounds; k++) {
        line_up(&race.line, 3 * k - 2);
        race_round(me, k, &random);
        line_up(&race.line, 3 * k - 1);
        if (me == 0) {
            race.split += race.result[0] != race.result[1];
            race.both_ways[race.result[0] != 0]++;
            race.rounds = clock_ns() > race.end_ns ? k : race.rounds;        /* the other one reads it after the line */
            race_reset(k + 1);
        }
        line_up(&race.line, 3 * k);
    }
    return NULL;
}

static void run_race(bool proposed)
{
    pthread_t other;
    rig_close();
    rig_open(2, &wait_ways_kernel);
    race = (struct race){ .proposed = proposed, .end_ns = clock_ns() + race_ns(), .rounds = race_rounds() };
    race_reset(1);
    assert_int_equal(pthread_create(&other, NULL, race_run, &race), 0);
    race_run(NULL);
    pthread_join(other, NULL);
    printf("%" PRIu64 " rounds: both succeeded in %" PRIu64 ", both failed in %" PRIu64 ", split in %" PRIu64 "\n", race.rounds,
           race.both_ways[0], race.both_ways[1], race.split);
    assert_true(race.split == 0);
}

/* One arrives while the other gives up: in every round both succeed or both fail. Without the fence of the arrival, without the second
   look, or without the look at V on completion, some rounds split. */
static void both_or_none_while_one_gives_up(void **state)
{
    (void)state;
    run_race(false);
}

/* The proposal of a dead rank lies there when the round begins: one decides it while the other arrives and withdraws it. */
static void both_or_none_over_a_dead_ranks_proposal(void **state)
{
    (void)state;
    run_race(true);
}

static struct { struct line line; uint64_t rounds, blamed; } last_act;

static void *arrives_and_dies(void *arg)
{
    (void)arg;
    for (uint64_t k = 1; k <= last_act.rounds; k++) {
        line_up(&last_act.line, 2 * k - 1);
        arrive(0, k);
        die(0);
        line_up(&last_act.line, 2 * k);
    }
    return NULL;
}

/* Rank 0 does its part and dies in the same breath; rank 2 has not come, so nothing is complete. Who looks at that moment, in whatever
   order it sees the two, must not blame rank 0: it loads the alive word first, and what was done before a death is seen after it. */
static void who_did_its_part_and_died_is_not_blamed(void **state)
{
    (void)state;
    pthread_t other;
    rig_close();
    rig_open(3, &wait_ways_kernel);
    memset(&last_act, 0, sizeof last_act);
    uint64_t end_ns = clock_ns() + race_ns();
    last_act.rounds = race_rounds();
    assert_int_equal(pthread_create(&other, NULL, arrives_and_dies, NULL), 0);
    for (uint64_t k = 1; k <= last_act.rounds; k++) {
        arrive(1, k);
        line_up(&last_act.line, 2 * k - 1);
        do
            last_act.blamed += look(1, k, false) < 0;
        while (rig.watch[1].gone[0] == GONE_NO && said() == 0);
        last_act.rounds = clock_ns() > end_ns ? k : last_act.rounds;
        line_up(&last_act.line, 2 * k);
        store_release32(mark(0), 1000 | FUTEX_WAITERS);
        rig.watch[1].gone[0] = GONE_NO;
        store_release32(&rig.watch[1].attention, 0);
        say(0);
    }
    pthread_join(other, NULL);
    assert_true(last_act.blamed == 0);
}

enum { CROWD = 4 };
static struct { pthread_barrier_t line; shared32 stop; shared64 k; int result[CROWD]; uint64_t rounds, failed, split; } crowd;

static void *crowd_run(void *arg)
{
    uint32_t me = (uint32_t)(uintptr_t)arg;
    uint64_t random = 99 + me;
    for (uint64_t k = 1; k <= crowd.rounds; k++) {
        pthread_barrier_wait(&crowd.line);
        if (me == 0)
            store_release64(&crowd.k, k);
        struct op op = op_of(me, k);
        for (uint64_t i = team_random(&random) % 2000; i; i--)
            cpu_pause();
        crowd.result[me] = drive_to_end(&op);
        pthread_barrier_wait(&crowd.line);
        if (me == 0) {
            for (uint32_t p = 1; p < CROWD; p++)
                crowd.split += crowd.result[p] != crowd.result[0];
            crowd.failed += crowd.result[0] != 0;
            for (uint32_t p = 0; p < CROWD; p++)
                store_release32(&rig.watch[p].attention, 0);
            store_release64(&crowd.k, 0);
            say(0);
        }
        pthread_barrier_wait(&crowd.line);
    }
    store_release32(&crowd.stop, 1);
    return NULL;
}

/* Proposes again and again and never decides, as one that is killed right after its proposal: by a plain CAS from 0, as they do. */
static void *proposer_run(void *arg)
{
    (void)arg;
    uint64_t random = 5;
    while (!load_acquire32(&crowd.stop)) {
        uint64_t k = load_acquire64(&crowd.k), none = 0;
        if (k)
            swap_if64(&rig.slot->verdict, &none, verdict_make(k, WHY_DEADLINE, 3, 2));
        for (uint64_t i = team_random(&random) % 3000; i; i--)
            cpu_pause();
    }
    return NULL;
}

static void all_or_none_under_foreign_proposals(void **state)
{
    (void)state;
    pthread_t ranks[CROWD], proposer;
    rig_close();
    rig_open(CROWD, &wait_ways_kernel);
    memset(&crowd, 0, sizeof crowd);
    crowd.rounds = (uint64_t)team_many("TUTTI_TEST_ROUNDS", 4000, 500);
    pthread_barrier_init(&crowd.line, NULL, CROWD);
    for (uintptr_t p = 0; p < CROWD; p++)
        assert_int_equal(pthread_create(&ranks[p], NULL, crowd_run, (void *)p), 0);
    assert_int_equal(pthread_create(&proposer, NULL, proposer_run, NULL), 0);
    for (int p = 0; p < CROWD; p++)
        pthread_join(ranks[p], NULL);
    pthread_join(proposer, NULL);
    pthread_barrier_destroy(&crowd.line);
    printf("%" PRIu64 " rounds, %" PRIu64 " failed for all, %" PRIu64 " split\n", crowd.rounds, crowd.failed, crowd.split);
    assert_true(crowd.split == 0);
}

/* ---- the same through the library, with numbers just below 2^30 and 2^32 ---- */

static int crosses(tutti_comm *world, int rank, struct team *team)
{
    struct team_rank *mine = &team->rank[rank];
    for (int i = 0; i < 6; i++) {
        int32_t x = rank + i, y = 0;
        int r = tutti_all_reduce(&x, &y, 1, TUTTI_I32, TUTTI_SUM, world, NULL);
        mine->error[0] = mine->error[0] ? mine->error[0] : r;
        mine->wrong += y != 3 + 3 * i;
    }
    if (rank == 1)
        return 0;                                    /* leaves behind the end of the number */
    mine->error[1] = tutti_barrier(world, NULL);
    team_note(team, rank, world);
    return 0;
}

static void a_world_that_crosses_the_end_of_the_number(void **state)
{
    (void)state;
    static const char *const first[] = { "1073741821", "1073741816", "4294967293", "4294967288" };
    for (size_t i = 0; i < 4; i++) {
        setenv("TUTTI_FIRST_SEQ", first[i], 1);
        struct team *team = team_start(3, crosses, true);
        assert_int_equal(team_end(team), 0);
        for (int r = 0; r < 3; r += 2) {
            if (team->rank[r].error[0])
                fail_msg("rank %d: %d, rank 1 ended with 0x%x: %s%s", r, team->rank[r].error[0], (unsigned)team->status[1], team->rank[r].report,
                         team_stderr(team));
            assert_int_equal(team->rank[r].wrong, 0);
            assert_int_equal(team->rank[r].error[1], -EOWNERDEAD);
        }
        assert_non_null(strstr(team->rank[0].report, "barrier #7"));
        team_free(team);
    }
    unsetenv("TUTTI_FIRST_SEQ");
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
        bool device = seq != 7;                      /* in 7 nobody has one, though the comm has seen some */
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

/* A host rank has come and died: nothing is missing of it until a device rank comes, which asks more of all. */
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
    assert_int_equal(look(0, 5, true), -EIO);        /* before the deadline, which has passed, too */
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

/* The same, with a word that tells when it is ready: which ends the wait, and nothing of the operation. */
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

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_word_says_what_was_put_in), CASE(numbers_are_compared_around_their_end), CASE(each_reason_has_its_error),
        CASE(a_dead_proposers_proposal_is_decided), CASE(a_proposal_is_withdrawn_where_all_are_there), CASE(a_confirmed_verdict_is_final),
        CASE(a_death_without_a_mark_is_passed_on),
        CASE(a_stale_proposal_is_cleared), CASE(a_later_proposal_means_success), CASE(words_near_the_end_of_the_number),
        CASE(a_dead_rank_that_did_its_part_is_not_blamed), CASE(a_dead_committer_is_blamed), CASE(a_reader_that_is_gone_needs_no_waiting),
        CASE(a_deadline_names_no_one_who_has_done_his_part),
        CASE(an_exit_ends_by_the_reader_alone), CASE(an_exit_ends_by_the_readers_end),
        CASE(an_exit_ends_when_the_reader_is_past_it), CASE(without_leave_a_fulfilled_claim_goes_on),
        CASE(a_confirmed_verdict_ends_an_exit), CASE(an_exit_sleeps), CASE(a_private_difference_ends_it_for_all),
        CASE(a_finder_that_dies_is_blamed_for_that), CASE(a_difference_in_its_order),
        CASE(reasons_in_their_order), CASE(everybody_finds_the_mismatch), CASE(counts_with_the_same_hash_differ),
        CASE(a_quit_is_told_in_its_order), CASE(a_writer_leaves_the_sleepers_alone), CASE(a_sleep_watches_all_that_can_end_it),
        CASE(an_abort_fails_what_is_under_way), CASE(an_abort_fails_nothing_that_is_over),
        CASE(a_death_is_passed_on_before_anything_else), CASE(without_a_wait_on_many_words), CASE(more_ranks_than_one_sleep_can_watch),
        CASE(a_kept_operation_is_late_and_whole), CASE(an_hour_asleep_is_not_counted),
        CASE(both_or_none_while_one_gives_up), CASE(both_or_none_over_a_dead_ranks_proposal), CASE(who_did_its_part_and_died_is_not_blamed),
        CASE(with_a_device_all_must_have_placed), CASE(who_died_before_its_result_was_placed), CASE(a_failed_device_is_a_reason),
        CASE(a_late_device_names_its_own_rank), CASE(a_late_disk_names_its_own_rank),
        CASE(all_or_none_under_foreign_proposals), cmocka_unit_test(a_world_that_crosses_the_end_of_the_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
