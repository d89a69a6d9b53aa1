/* Which pause is chosen, when told how long operations take with each. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/backoff.h"

enum {
    USUAL = 32,
    TRIAL = (BACKOFF_ARMS * BACKOFF_PASSES + 2) * BACKOFF_BLOCK,
    PERIOD = BACKOFF_PERIOD * BACKOFF_BLOCK
};

struct rank {
    struct backoff backoff;
    uint64_t seq, tick, calls;
    /* an operation takes 100 ticks with this pause, and one more for each cycle beside it */
    uint32_t best;
};

static void run(struct rank *r, uint64_t operations)
{
    while (operations--) {
        uint32_t steps = backoff_steps(&r->backoff, USUAL);
        r->tick += 100 + (steps > r->best ? steps - r->best : r->best - steps);
        r->seq++;
        if (backoff_due(++r->calls))
            backoff_block(&r->backoff, r->seq, r->tick, r->calls);
    }
}

/* All the pauses there are, one by one the best: each is found by the first trial, and kept. */
static void test_finds(void **state)
{
    (void)state;
    struct rank first = { .best = USUAL };
    uint32_t tried[BACKOFF_ARMS] = { 0 }, n = 0;
    for (int i = 0; i < TRIAL; i += BACKOFF_BLOCK) {
        uint32_t steps = backoff_steps(&first.backoff, USUAL), k = 0;
        while (k < n && tried[k] != steps)
            k++;
        if (k == n)
            tried[n++] = steps;
        run(&first, BACKOFF_BLOCK);
    }
    assert_int_equal(n, BACKOFF_ARMS);
    for (uint32_t k = 0; k < n; k++) {
        struct rank r = { .best = tried[k] };
        run(&r, TRIAL);
        for (int i = 0; i < 10; i++, run(&r, 1000))
            assert_int_equal(backoff_steps(&r.backoff, USUAL), r.best);
    }
}

/* Ranks are put elsewhere: the next trial finds that out. */
static void test_changes(void **state)
{
    (void)state;
    struct rank r = { .best = 0 };
    run(&r, TRIAL);
    assert_int_equal(backoff_steps(&r.backoff, USUAL), 0);
    r.best = USUAL;
    run(&r, PERIOD);
    assert_int_equal(backoff_steps(&r.backoff, USUAL), USUAL);
}

/* Two ranks of a comm try the same pauses at the same operations, also if one of them sees no
 * trial's end for long. */
static void test_together(void **state)
{
    (void)state;
    struct rank a = { .best = 0 }, b = { .best = USUAL };
    for (int i = 1; i < TRIAL - BACKOFF_BLOCK; i++) {
        run(&a, 1);
        run(&b, 1);
        assert_int_equal(a.backoff.arm, b.backoff.arm);
    }
}

/* Blocks with operations of other kinds between them say nothing; one that was held up
 * is overlooked. */
static void test_mixed(void **state)
{
    (void)state;
    struct rank mixed = { .best = 0 }, held = { .best = 0 };
    for (int i = 0; i < TRIAL; i++) {
        run(&mixed, 1);
        mixed.seq += (uint64_t)i % 2;
    }
    assert_int_equal(backoff_steps(&mixed.backoff, USUAL), USUAL);
    run(&mixed, PERIOD);
    assert_int_equal(backoff_steps(&mixed.backoff, USUAL), 0);
    for (int i = 0; i < TRIAL; i++) {
        run(&held, 1);
        held.tick += i < TRIAL / 3 ? 100000 : 0;
    }
    assert_int_equal(backoff_steps(&held.backoff, USUAL), 0);
}

/* A kind that comes in turns with another one, always after it, has its trials all the same. */
static void test_turns(void **state)
{
    (void)state;
    struct rank r = { .best = 0 };
    for (int turn = 0; turn < 4; turn++) {
        r.seq += PERIOD / 2;                         /* of the other */
        run(&r, PERIOD / 2);
    }
    assert_int_equal(backoff_steps(&r.backoff, USUAL), 0);
}

/* A pause with which some blocks are fast, and most are not, is none to keep. */
static void test_lucky(void **state)
{
    (void)state;
    struct rank r = { .best = 0 };
    for (int turn = 0; turn < TRIAL / BACKOFF_BLOCK; turn++) {
        bool lucky = backoff_steps(&r.backoff, USUAL) == USUAL && turn / BACKOFF_ARMS % 2 == 0;
        run(&r, BACKOFF_BLOCK - 1);
        r.tick -= lucky ? 50 * (BACKOFF_BLOCK - 1) : 0;
        run(&r, 1);
    }
    assert_int_equal(backoff_steps(&r.backoff, USUAL), 0);
}

/* Operations that come alone say nothing, however long the program takes from one to the next. What
 * those back to back had found is forgotten, and found again. */
static void test_alone(void **state)
{
    (void)state;
    struct rank r = { .best = 0 };
    run(&r, PERIOD);
    assert_int_equal(backoff_steps(&r.backoff, USUAL), 0);
    for (int i = 0; i < TRIAL; i++) {
        uint32_t steps = backoff_steps(&r.backoff, USUAL);
        run(&r, 1);
        r.tick += steps > USUAL ? BACKOFF_SLOW : BACKOFF_SLOW + 1000;
    }
    assert_int_equal(backoff_steps(&r.backoff, USUAL), USUAL);
    run(&r, PERIOD);
    assert_int_equal(backoff_steps(&r.backoff, USUAL), 0);
}

/* A block of operations that come alone: behind it the usual pause. Once they come back to back the
 * one that was found is there again, without a trial. */
static void test_gap(void **state)
{
    (void)state;
    struct rank r = { .best = 0 };
    run(&r, TRIAL);
    assert_int_equal(backoff_steps(&r.backoff, USUAL), 0);
    for (int i = 0; i < BACKOFF_BLOCK; i++) {
        r.tick += BACKOFF_SLOW + 1;
        run(&r, 1);
    }
    assert_int_equal(backoff_steps(&r.backoff, USUAL), USUAL);
    run(&r, BACKOFF_BLOCK);
    assert_int_equal(backoff_steps(&r.backoff, USUAL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_finds), cmocka_unit_test(test_changes),
        cmocka_unit_test(test_together), cmocka_unit_test(test_mixed), cmocka_unit_test(test_turns),
        cmocka_unit_test(test_lucky), cmocka_unit_test(test_alone), cmocka_unit_test(test_gap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
