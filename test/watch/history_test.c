/* What is read of a journal is whole, in order and on one clock: of a rank that writes on, of one
 * that is killed in the middle of a record, of numbers that somebody has written over. And the rank
 * that came last is the one that did. */
/* ctest: timeout=240 */
#include "watch/history.h"

#include "base/clock.h"
#include "support/recorder.h"
#include "watch/journal.h"
#include "watch/lateness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { RANKS = 4, KILLS = 300, READS = 20000, WHOLE = JOURNAL_RECORDS - 1 };
enum { FIRST_SEQ = 1000 };

static struct arena arena;
static struct slot *slot;
static struct clock_point start;

static int setup(void **state)
{
    char room[256];
    struct text why = TEXT_IN(room);
    struct arena_plan plan = {
        .size = RANKS, .job = "history", .span_bytes = 2 << 20, .first_seq = FIRST_SEQ,
        .store_bytes = 2 << 20
    };
    (void)state;
    text_clear(&why);
    assert_int_equal(arena_create(&arena, &plan, &why), 0);
    slot = arena_slot(&arena, 0);
    slot->size = RANKS;
    slot->birth = 1;
    for (uint32_t r = 0; r < RANKS; r++)
        slot->world_rank[r] = r;
    store_relaxed32(&slot->state, SLOT_USED);        /* relaxed: nobody else is there */
    start = clock_now();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    arena_detach(&arena);
    return 0;
}

static struct member *member(uint32_t p) { return arena_member(slot, p); }

static struct history look(void)
{
    struct history h;
    assert_int_equal(history_read(&h, &arena, 0, clock_now()), 0);
    assert_int_equal(h.size, RANKS);
    return h;
}

/* ---- one rank that writes ---- */

/* Of a ring with `begun` records that nobody writes any more: all but the place that is next. */
static void must_be_the_last(const struct history_rank *rank, uint64_t begun)
{
    assert_int_equal(rank->begun, begun);
    assert_int_equal(rank->n, begun < WHOLE ? begun : WHOLE);
    for (uint32_t i = 0; i < rank->n; i++) {
        assert_int_equal(rank->op[i].number, begun - rank->n + 1 + i);
        assert_true(recorder_whole(&rank->op[i]));
    }
}

static uint64_t begun(uint32_t p) { return load_acquire64(&member(p)->head); }   /* E94 acquire */

static void the_oldest_first(void **state)
{
    (void)state;
    struct history h = look();
    assert_int_equal(h.n, 0);
    history_drop(&h);
    for (uint64_t k = 1; k <= 3 * JOURNAL_RECORDS; k++) {
        recorder_write(member(0), FIRST_SEQ, k);
        h = look();
        must_be_the_last(&h.rank[0], k);
        assert_int_equal(h.rank[1].n, 0);
        history_drop(&h);
    }
}

/* A kill strikes at any instruction of a loop that does nothing but write records: most are in the
 * middle of one. */
static void killed_in_the_middle(void **state)
{
    uint64_t torn = 0;
    (void)state;
    for (uint64_t k = 1; k <= JOURNAL_RECORDS; k++)
        recorder_write(member(0), FIRST_SEQ, k);
    for (int i = 0; i < KILLS; i++) {
        uint64_t was = begun(0), some = was + 1 + (uint64_t)(i * 7919 % 5000);
        pid_t pid = recorder_start(member(0), FIRST_SEQ, was + 1);
        while (begun(0) < some) {
        }
        recorder_stop(pid);
        struct history h = look();
        uint64_t now = begun(0);
        must_be_the_last(&h.rank[0], now);
        history_drop(&h);
        /* relaxed: nobody writes */
        torn += load_relaxed64(&member(0)->journal[(now + 1) % JOURNAL_RECORDS].seq)
            != FIRST_SEQ + now + 1 - JOURNAL_RECORDS;
    }
    printf("%llu of %d kills left half a record\n", (unsigned long long)torn, KILLS);
    assert_true(torn > 0);
}

/* A writer may be so fast that each look finds all written over: one in HOLD finds it standing
 * still. */
static void written_over_meanwhile(void **state)
{
    enum { HOLD = 100 };
    (void)state;
    uint64_t from = begun(0), left_out = 0, seen = 0;
    pid_t pid = recorder_start(member(0), FIRST_SEQ, from + 1);
    for (int i = 0; i < READS || !left_out; i++) {
        bool held = i % HOLD == HOLD - 1;
        if (held)
            recorder_hold(pid);
        struct history h = look();
        const struct history_rank *rank = &h.rank[0];
        if (held)
            must_be_the_last(rank, begun(0));
        for (uint32_t k = 0; k < rank->n; k++) {
            assert_true(recorder_whole(&rank->op[k]));
            assert_int_equal(rank->op[k].number, rank->begun - rank->n + 1 + k);
        }
        seen += held ? 0 : rank->n;
        left_out += rank->n < WHOLE;
        history_drop(&h);
        if (held)
            recorder_go_on(pid);
    }
    recorder_stop(pid);
    printf("%llu records seen of a writer that goes on; %llu of %d looks left some out\n",
           (unsigned long long)seen, (unsigned long long)left_out, READS);
}

/* ---- who came last ---- */

/* An operation of all: rank p arrives at tick arrive[p], and ends at end[p] (0: under way; odd: by
 * a clock), of ticks after `start`. */
static void meet(uint64_t number, const uint64_t arrive[RANKS], const uint64_t end[RANKS])
{
    for (uint32_t p = 0; p < RANKS; p++) {
        struct watch w = { .mine = member(p) };
        const struct journal_entry e = {
            .seq = FIRST_SEQ + number, .descriptor = fingerprint_make(KIND_BARRIER, 0, 0, 0, 0),
            .tick = start.tick + arrive[p], .arrived = true
        };
        if (!arrive[p])
            continue;
        journal_enter(&w, &e);
        if (end[p])
            journal_end_by(&w, 0, start.tick + end[p], end[p] & 1);
    }
}

static const struct history_op *op_of(const struct history *h, uint32_t p, uint64_t number)
{
    const struct history_op *op = history_find(&h->rank[p], number);
    assert_non_null(op);
    return op;
}

static uint64_t ns_of(uint64_t ticks, struct clock_point now)
{
    return clock_tick_ns(start.tick + ticks, arena.header->origin, now);
}

enum { MS = 4000000 };                 /* some, in ticks */

static void the_last_is_the_last(void **state)
{
    (void)state;
    struct clock_point now = clock_now();
    now.tick = start.tick + 1000 * (uint64_t)MS;       /* so that all of this is over */
    now.ns = start.ns + 1000000000u;
    meet(1, (uint64_t[]){ MS, 2 * MS, 9 * MS, 3 * MS }, (uint64_t[]){ MS, 9 * MS + 1, 9 * MS, 0 });
    meet(2, (uint64_t[]){ 10 * MS, 11 * MS, 11 * MS + 2, 0 }, (uint64_t[]){ 0, 0, 0, 0 });
    struct history h;
    assert_int_equal(history_read(&h, &arena, 0, now), 0);
    for (uint32_t p = 0; p < RANKS; p++) {
        const struct history_op *op = op_of(&h, p, 1);
        assert_int_equal(op->last, 2);
        assert_int_equal(op->last_ns, ns_of(9 * MS, now));
    }
    /* the estimate of rank 0 was too early */
    assert_int_equal(op_of(&h, 0, 1)->ended_ns, ns_of(9 * MS, now));
    assert_false(op_of(&h, 0, 1)->exact);
    assert_int_equal(op_of(&h, 1, 1)->ended_ns, ns_of(9 * MS + 1, now));
    assert_true(op_of(&h, 1, 1)->exact);
    assert_int_equal(op_of(&h, 3, 1)->ended_ns, 0);
    /* rank 3 has not come: the last one is not known */
    assert_int_equal(op_of(&h, 2, 2)->last, -1);
    assert_int_equal(op_of(&h, 2, 2)->last_ns, 0);
    assert_null(history_find(&h.rank[3], 2));
    history_drop(&h);
}

/* Rank 1 lost the CPU between its arrival and the clock: others have gone on before that. */
static void no_arrival_after_an_end(void **state)
{
    (void)state;
    struct clock_point now = clock_now();
    now.tick = start.tick + 1000 * (uint64_t)MS;
    now.ns = start.ns + 1000000000u;
    meet(1, (uint64_t[]){ MS, 8 * MS, 2 * MS, 3 * MS },
         (uint64_t[]){ 3 * MS, 8 * MS, 3 * MS + 1, 4 * MS });
    meet(2, (uint64_t[]){ 20 * MS, 30 * MS, 21 * MS, 22 * MS }, (uint64_t[RANKS]){ 0 });
    meet(3, (uint64_t[]){ 40 * MS, 48 * MS, 42 * MS, 43 * MS }, (uint64_t[]){ 43 * MS, 49 * MS,
                                                                             44 * MS, 44 * MS });
    meet(4, (uint64_t[]){ 46 * MS, 60 * MS, 50 * MS, 50 * MS }, (uint64_t[RANKS]){ 0 });
    struct history h;
    assert_int_equal(history_read(&h, &arena, 0, now), 0);
    assert_int_equal(op_of(&h, 1, 1)->arrived_ns, ns_of(3 * MS + 1, now));   /* an exact end */
    assert_int_equal(op_of(&h, 1, 3)->arrived_ns, ns_of(46 * MS, now));      /* a next call */
    assert_int_equal(op_of(&h, 1, 2)->arrived_ns, ns_of(30 * MS, now));      /* none of these */
    assert_int_equal(op_of(&h, 0, 2)->last, 1);
    history_drop(&h);
}

/* ---- what that adds up to ---- */

static void lateness_adds_up(void **state)
{
    (void)state;
    struct clock_point now = clock_now();
    struct lateness l = { 0 };
    struct history h;
    now.tick = start.tick + 1000 * (uint64_t)MS;
    now.ns = start.ns + 1000000000u;                   /* 4 ticks a nanosecond */
    uint64_t seven = ns_of(8 * MS, now) - ns_of(MS, now);
    uint64_t ten = ns_of(11 * MS, now) - ns_of(MS, now);
    uint64_t all = ns_of((44 * 3 + 2) * MS, now) - ns_of(MS, now);
    for (uint32_t k = 1; k <= 10; k++) {
        /* rank 3 is late, by k; the 5th time rank 0; the 6th time all come at once */
        uint64_t at = 20 * MS * (uint64_t)k, late = at + k * MS;
        meet(k, (uint64_t[]){ k == 5 ? at + 7 * MS : at, at, k == 2 ? at - MS : at,
                              k == 5 || k == 6 ? at : late }, (uint64_t[RANKS]){ 0 });
        if (k == 4 || k == 10) {
            assert_int_equal(history_read(&h, &arena, 0, now), 0);
            assert_int_equal(lateness_add(&l, &h), 0);
            assert_int_equal(l.compared, k);           /* each once, at however many looks */
            history_drop(&h);
        }
    }
    lateness_sort(&l);
    assert_int_equal(l.compared, 10);
    assert_int_equal(l.together, 1);
    struct late_rank last = lateness_of(&l, 3), first = lateness_of(&l, 0);
    assert_int_equal(last.last, 8);                    /* by 1, 2, 3, 4, 7, 8, 9, 10 */
    /* each time is rounded by itself */
    assert_true(last.median_ns - seven + 2 < 5);
    assert_true(last.p99_ns - ten + 2 < 5);
    assert_true(last.cost_ns - all + 100 < 200);
    assert_int_equal(first.last, 1);
    assert_true(first.median_ns - seven + 2 < 5);
    assert_int_equal(lateness_of(&l, 1).last, 0);
    assert_int_equal(lateness_of(&l, 1).cost_ns, 0);
    lateness_drop(&l);
}

/* ---- what somebody has written over ---- */

static uint64_t seed;

static uint64_t dice(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

static void damage_is_bounded(void **state)
{
    (void)state;
    const char *given = getenv("TUTTI_TEST_SEED");
    seed = given ? strtoull(given, NULL, 0) : clock_ns() | 1;
    printf("TUTTI_TEST_SEED=%llu\n", (unsigned long long)seed);
    for (uint32_t round = 0; round < 2000; round++) {
        for (uint32_t p = 0; p < RANKS; p++)
            for (int i = 0; i < 300; i++) {
                shared64 *word = (shared64 *)(void *)&member(p)->journal
                    + dice() % (sizeof member(p)->journal / 8);
                /* relaxed: nobody else is there. Large, small, and near other numbers */
                store_relaxed64(word, dice() % 3 ? dice() >> dice() % 64 : FIRST_SEQ + dice() % 9);
            }
        store_relaxed64(&member(round % RANKS)->head, dice() >> dice() % 64);    /* relaxed: same */
        struct clock_point now = clock_now();
        struct history h;
        assert_int_equal(history_read(&h, &arena, 0, now), 0);
        for (uint32_t i = 0; i < h.n; i++) {
            const struct history_op *op = &h.at[i];
            assert_true(op->last >= -1 && op->last < RANKS);
            assert_true(op->result <= 0 && op->result > -255);
            assert_true(op->began_ns <= now.ns && op->ended_ns <= now.ns);
            assert_true(op->arrived_ns <= now.ns && op->last_ns <= now.ns);
            assert_in_range(fingerprint_kind(op->descriptor), KIND_NONE + 1, KIND_COUNT - 1);
        }
        history_drop(&h);
    }
}

static void nothing_there(void **state)
{
    struct history h;
    (void)state;
    assert_int_equal(history_read(&h, &arena, 1, clock_now()), -ENOENT);
    assert_int_equal(history_read(&h, &arena, UINT32_MAX, clock_now()), -ENOENT);
    slot->size = UINT32_MAX;
    assert_int_equal(history_read(&h, &arena, 0, clock_now()), -ENOENT);
    history_drop(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_oldest_first, setup, teardown),
        cmocka_unit_test_setup_teardown(killed_in_the_middle, setup, teardown),
        cmocka_unit_test_setup_teardown(written_over_meanwhile, setup, teardown),
        cmocka_unit_test_setup_teardown(the_last_is_the_last, setup, teardown),
        cmocka_unit_test_setup_teardown(no_arrival_after_an_end, setup, teardown),
        cmocka_unit_test_setup_teardown(lateness_adds_up, setup, teardown),
        cmocka_unit_test_setup_teardown(damage_is_bounded, setup, teardown),
        cmocka_unit_test_setup_teardown(nothing_there, setup, teardown)
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
