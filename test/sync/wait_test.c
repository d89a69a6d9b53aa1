/* The cheap phases of a wait, with a clock-less way to yield that the test plays on: what ends
 * them, and how much they spend. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "sync/wait.h"

#include <errno.h>
#include <pthread.h>

/* A yield is where others run: it stores `value` into the word at the n-th yield. */
struct play { int yields, at; shared64 *word; uint64_t value; shared64 *verdict; shared32 *news; };

static void play_yield(void *arg)
{
    struct play *p = arg;
    if (++p->yields != p->at)
        return;
    if (p->word)
        store_release64(p->word, p->value);
    if (p->verdict)
        store_release64(p->verdict, 1);
    if (p->news)
        store_release32(p->news, 1);
}
/* Without credit nothing is spent; two early ones in a row outlive one late one. */
static void pace_is_learned(void **state)
{
    (void)state;
    struct wait_pace pace = { .soon = 1000 };
    struct wait_budget all = { .spin_ticks = 5000, .yields = 80, .yield_ticks = 9000 }, now;
    now = wait_pace_budget(&pace, &all);
    assert_true(now.spin_ticks == 0 && now.yields == 0);
    wait_pace_learn(&pace, 1000);
    now = wait_pace_budget(&pace, &all);
    assert_true(now.spin_ticks == 1000 && now.yields == 0);
    wait_pace_learn(&pace, 1001);
    assert_int_equal(wait_pace_budget(&pace, &all).spin_ticks, 0);
    for (int i = 0; i < 9; i++)
        wait_pace_learn(&pace, 1);
    wait_pace_learn(&pace, 1001);
    all.spin_ticks = 0;                              /* ranks outnumber CPUs: yields, as bounded */
    now = wait_pace_budget(&pace, &all);
    assert_true(now.spin_ticks == 0 && now.yields == 80 && now.yield_ticks == 1000);
    wait_pace_learn(&pace, 1001);
    assert_int_equal(wait_pace_budget(&pace, &all).yields, 0);
}

static uint64_t no_now(void *arg) { (void)arg; fail_msg("asked for the time"); return 0; }
static int no_sleep(void *arg, const struct futex_word *words, int n, uint64_t ns)
{
    (void)arg; (void)words; (void)n; (void)ns;
    fail_msg("slept");
    return 0;
}

static int no_wake(void *arg, shared32 *word, int n)
{
    (void)arg;
    (void)word;
    (void)n;
    fail_msg("woke");
    return 0;
}

static struct wait_ways ways_of(struct play *p)
{
    return (struct wait_ways){ no_now, no_sleep, no_wake, play_yield, p };
}

static shared64 word, verdict;
static shared32 news;
/* of ticks to spin, yields, ticks to yield */
#define BUDGET(spin, most, ticks) \
    (&(struct wait_budget){ .spin_ticks = (spin), .yields = (most), .yield_ticks = (ticks) })
static const struct wait_ends ends = { &verdict, &news };

static int fresh(void **state)
{
    (void)state;
    store_release64(&word, 0);
    store_release64(&verdict, 0);
    store_release32(&news, 0);
    return 0;
}

static void there_already(void **state)
{
    (void)state;
    struct play p = { 0 };
    struct wait_ways ways = ways_of(&p);
    store_release64(&word, 7);
    const struct wait_budget budgets[] = {
        { 0, 0, 0, 0, 0 }, { 0, 10, 0, 0, 0 }, { 1000, 0, 0, 0, 0 }, { 1000, 10, 0, 0, 0 }
    };
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(wait_spin(&word, 7, ends, &budgets[i], &ways), 1);
        /* more than asked for is there, too */
        assert_int_equal(wait_spin(&word, 6, ends, &budgets[i], &ways), 1);
        assert_int_equal(wait_spin(&word, 0, ends, &budgets[i], &ways), 1);
    }
    assert_int_equal(p.yields, 0);
}

static void a_budget_is_a_bound(void **state)
{
    (void)state;
    struct play p = { 0 };
    struct wait_ways ways = ways_of(&p);
    assert_int_equal(wait_spin(&word, 1, ends, BUDGET(0, 0, 0), &ways), 0);
    assert_int_equal(p.yields, 0);
    assert_int_equal(wait_spin(&word, 1, ends, BUDGET(0, 17, 0), &ways), 0);
    assert_int_equal(p.yields, 17);
    /* ends by itself */
    assert_int_equal(wait_spin(&word, 1, ends, BUDGET(20000, 0, 0), &ways), 0);
    assert_int_equal(p.yields, 17);
    assert_int_equal(wait_spin(&word, 1, ends, BUDGET(20000, 3, 0), &ways), 0);
    /* whatever the counter says */
    assert_int_equal(wait_spin(&word, 1, ends, BUDGET(UINT64_MAX, 0, 0), &ways),
                     0);
    assert_int_equal(p.yields, 20);
}

/* Comes during a yield: seen at once; at the last one, too. */
static void comes_while_yielding(void **state)
{
    (void)state;
    for (int at = 1; at <= 5; at++) {
        fresh(state);
        struct play p = { .at = at, .word = &word, .value = 3 };
        struct wait_ways ways = ways_of(&p);
        assert_int_equal(wait_spin(&word, 3, ends, BUDGET(0, 5, 0), &ways), 1);
        assert_int_equal(p.yields, at);
    }
    fresh(state);
    struct play less = { .at = 1, .word = &word, .value = 2 };
    struct wait_ways ways = ways_of(&less);
    assert_int_equal(wait_spin(&word, 3, ends, BUDGET(0, 5, 0), &ways), 0);
    assert_int_equal(less.yields, 5);
}

/* Asked before a yield whether to look on; the word may come by then. */
struct lingers { int asked, at; bool may; };

static bool linger_may(void *arg)
{
    struct lingers *l = arg;
    if (++l->asked == l->at)
        store_release64(&word, 1);
    return l->may;
}

static int linger(struct lingers *l, uint64_t ticks, struct play *p)
{
    struct wait_ways ways = ways_of(p);
    return wait_spin_or_linger(&word, 1, ends, BUDGET(0, 9, 0), &ways,
                               &(struct wait_linger){ ticks, linger_may, l });
}

/* Who may looks on in place of a yield, in a few of them; a look that is in vain ends by itself. */
static void looks_on_before_a_yield(void **state)
{
    struct play p = { 0 };
    struct lingers l = { .at = 1, .may = true };
    assert_int_equal(linger(&l, 1, &p), 1);
    assert_true(p.yields == 0 && l.asked == 1);
    fresh(state);
    l = (struct lingers){ .at = 1 };                 /* who may not yields, and looks then */
    assert_int_equal(linger(&l, UINT64_MAX, &p), 1);
    assert_true(p.yields == 1 && l.asked == 1);
    fresh(state);
    p.yields = 0;
    l = (struct lingers){ .may = true };
    assert_int_equal(linger(&l, 1000, &p), 0);
    assert_int_equal(p.yields, 9);
    assert_in_range(l.asked, 1, 8);
    p.yields = l.asked = 0;
    assert_int_equal(linger(&l, 0, &p), 0);          /* nobody who is not to */
    assert_true(p.yields == 9 && l.asked == 0);
}

/* A spin's length is that of the clock, whatever a pause takes. The best of many: others may have
 * the CPU. */
static void spins_by_the_clock(void **state)
{
    (void)state;
    enum { PAUSES = 64, TRIES = 100, TIMES = 5 };
    struct play p = { 0 };
    struct wait_ways ways = ways_of(&p);
    uint64_t pauses = UINT64_MAX, spin = UINT64_MAX;
    for (int i = 0; i < TRIES; i++) {
        uint64_t began = clock_tick();
        for (int k = 0; k < PAUSES; k++)
            cpu_pause();
        uint64_t took = clock_tick() - began;
        pauses = took < pauses ? took : pauses;
    }
    for (int i = 0; i < TRIES; i++) {
        uint64_t began = clock_tick();
        assert_int_equal(wait_spin(&word, 1, ends, BUDGET(pauses, 0, 0), &ways), 0);
        uint64_t took = clock_tick() - began;
        spin = took < spin ? took : spin;
    }
    assert_in_range(spin, pauses, TIMES * pauses);
}

/* Yields that were followed by a long sleep were in vain, those followed by a short one too few. */
static void yields_follow_the_sleeps(void **state)
{
    (void)state;
    enum { SHORT = 50000, MIDDLE = 5000000, LONG = 100000000 };
    struct wait_budget budget = { .yields = 80 };
    struct play p = { 0 };
    struct wait_ways ways = ways_of(&p);
    static const struct { uint64_t took; int yields; } rows[] = {
        { SHORT, 80 }, { MIDDLE, 80 }, { LONG, 40 }, { MIDDLE, 40 }, { LONG, 20 }, { LONG, 10 },
        { LONG, 5 }, { LONG, 5 }, { WAIT_BRIEF, 5 }, { SHORT, 10 }, { MIDDLE, 10 }, { SHORT, 20 },
        { SHORT, 40 }, { SHORT, 80 }, { SHORT, 80 }
    };
    assert_int_equal(wait_yields(&budget), 80);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        p.yields = 0;
        wait_slept(&budget, rows[i].took);
        assert_int_equal(wait_spin(&word, 1, ends, &budget, &ways), 0);
        assert_int_equal(p.yields, rows[i].yields);
        assert_int_equal(wait_long_lately(&budget), rows[i].yields <= 10);
        assert_int_equal(wait_first_slice(&budget),
                         rows[i].yields <= 10 ? SLICE_FIRST : SLICE_BRIEF);
        struct wait_turns turns = { 0 };
        while (wait_turn(&turns, &budget, &ways)) { }
        assert_int_equal(p.yields, 2 * rows[i].yields);
    }
    /* Nobody who may not yield ever does. */
    budget.yields = 0;
    wait_slept(&budget, SHORT);
    assert_int_equal(wait_yields(&budget), 0);
}

/* Turn by turn, for who looks at more than a word: spins first, then yields. */
static void turns_spend_the_same_budget(void **state)
{
    (void)state;
    struct play p = { 0 };
    struct wait_ways ways = ways_of(&p);
    struct wait_turns turns = { 0 };
    assert_false(wait_turn(&turns, BUDGET(0, 0, 0), &ways));
    turns = (struct wait_turns){ 0 };
    uint64_t began = clock_tick();
    while (wait_turn(&turns, BUDGET(20000, 3, 0), &ways))
        assert_true(p.yields == 0 || clock_tick() - began >= 20000);
    assert_int_equal(p.yields, 3);
    assert_false(wait_turn(&turns, BUDGET(20000, 3, 0), &ways));     /* spent is spent */
    turns = (struct wait_turns){ 0 };
    assert_true(wait_turn(&turns, BUDGET(UINT64_MAX, 0, 0), &ways));
}

/* Where ranks share CPUs a wait sleeps briefly first; then, and elsewhere at once, for long. */
static void slices_of_a_wait(void **state)
{
    (void)state;
    assert_int_equal(wait_first_slice(BUDGET(0, 80, 0)), SLICE_BRIEF);
    assert_int_equal(wait_first_slice(BUDGET(1000, 16, 0)), SLICE_FIRST);
    assert_int_equal(wait_slice_ns(SLICE_BRIEF), 1000000);
    assert_int_equal(wait_slice_ns(SLICE_FIRST), 250000000);
    assert_int_equal(wait_slice_ns(SLICE_LATER + 100), 250000000);
    assert_int_equal(wait_slice_after(0), SLICE_FIRST);
    assert_int_equal(wait_slice_after(249999999), SLICE_FIRST);
    assert_int_equal(wait_slice_after(250000000), SLICE_LATER);
}

/* A neighbour that keeps the CPU for long ends the yielding early: asleep, the rank also
 * notices deaths. */
static void slow_yield(void *arg)
{
    struct play *p = arg;
    p->yields++;
    for (uint64_t began = clock_tick(); clock_tick() - began <= 1000;)
        cpu_pause();
}

static void yielding_is_bounded_in_time(void **state)
{
    (void)state;
    struct play p = { 0 };
    struct wait_ways ways = ways_of(&p);
    ways.yield = slow_yield;
    assert_int_equal(wait_spin(&word, 1, ends, BUDGET(0, 100000, 5000), &ways),
                     0);
    assert_in_range(p.yields, 1, 6);
    p.yields = 0;
    struct wait_turns turns = { 0 };
    while (wait_turn(&turns, BUDGET(0, 100000, 5000), &ways)) { }
    assert_in_range(p.yields, 1, 6);
    p.yields = 0;
    /* 0: no such bound */
    assert_int_equal(wait_spin(&word, 1, ends, BUDGET(0, 30, 0), &ways), 0);
    assert_int_equal(p.yields, 30);
}

static void ends_end_it(void **state)
{
    (void)state;
    struct play by_verdict = { .at = 2, .verdict = &verdict }, by_news = { .at = 3, .news = &news };
    struct wait_ways ways = ways_of(&by_verdict);
    assert_int_equal(wait_spin(&word, 1, ends, BUDGET(0, 100, 0), &ways), 0);
    assert_int_equal(by_verdict.yields, 2);
    fresh(state);
    ways = ways_of(&by_news);
    assert_int_equal(wait_spin(&word, 1, ends, BUDGET(0, 100, 0), &ways), 0);
    assert_int_equal(by_news.yields, 3);
    /* Set before: a spin without end in sight is not begun, and nothing is yielded. */
    struct play none = { 0 };
    ways = ways_of(&none);
    assert_int_equal(wait_spin(&word, 1, ends, BUDGET(UINT64_MAX, 100, 0), &ways),
                     0);
    fresh(state);
    store_release64(&verdict, 5);
    assert_int_equal(wait_spin(&word, 1, ends, BUDGET(UINT64_MAX, 100, 0), &ways),
                     0);
    assert_int_equal(none.yields, 0);
    /* A word that has come wins over an end: who has what it waited for goes on, and looks at the
     * verdict there. */
    store_release64(&word, 1);
    assert_int_equal(wait_spin(&word, 1, ends, BUDGET(UINT64_MAX, 100, 0), &ways),
                     1);
}

/* Other communication has its turn before each yield and within a sleep, which its coming ends. */
struct others { int turns, at; shared32 *word; };

static void others_run(void *arg)
{
    struct others *o = arg;
    if (++o->turns == o->at)
        store_release32(o->word, 1);
}

static void others_have_their_turn(void **state)
{
    (void)state;
    struct others o = { 0, 6, &news };
    struct wait_progress progress = { others_run, &o };
    struct wait_ways ways = wait_ways_with(&progress);
    struct futex_word slept_on = { &news, 0 };
    shared32 attention = 0;
    assert_int_equal(wait_spin(&word, 1, (struct wait_ends){ &verdict, &attention },
                               BUDGET(0, 3, 0), &ways), 0);
    assert_int_equal(o.turns, 3);
    /* an hour, of which three pieces pass: the word is looked at after each turn */
    assert_int_equal(wait_sleep(&ways, &slept_on, 1, UINT64_C(3600000000000), 1), 0);
    assert_int_equal(o.turns, 6);
    store_release32(&news, 0);
    assert_int_equal(wait_sleep(&ways, &slept_on, 1, 5000000, 1), -ETIMEDOUT);
    /* 20 us, 40, … 2 ms: nine pieces at most, on a machine with other work fewer */
    assert_in_range(o.turns, 7, 15);
    progress.run = NULL;
    ways = wait_ways_with(&progress);
    assert_ptr_equal(ways.sleep, wait_ways_kernel.sleep);
}

/* Whole 64-bit values: a word beyond 2^32 is not taken for a small one, nor the other way round. */
static void whole_words(void **state)
{
    (void)state;
    struct play p = { 0 };
    struct wait_ways ways = ways_of(&p);
    store_release64(&word, UINT64_C(1) << 32);
    assert_int_equal(wait_spin(&word, 0xffffffff, ends, BUDGET(0, 1, 0), &ways),
                     1);
    store_release64(&word, 0xffffffff);
    assert_int_equal(wait_spin(&word, UINT64_C(1) << 32, ends, BUDGET(0, 1, 0), &ways),
                     0);
    assert_int_equal(wait_spin(&word, UINT64_MAX, ends, BUDGET(0, 1, 0), &ways),
                     0);
}

/* The word comes from another thread, with what was written before it. Only the word, or a great
 * number of looks, ends a spin of such a budget. */
static int payload;

static void *writer(void *arg)
{
    (void)arg;
    payload = 42;
    store_release64(&word, 1);
    return NULL;
}

static void spins_until_it_comes(void **state)
{
    (void)state;
    struct play p = { 0 };
    struct wait_ways ways = ways_of(&p);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, writer, NULL), 0);
    while (!wait_spin(&word, 1, ends, BUDGET(UINT64_MAX, 0, 0), &ways)) { }
    assert_int_equal(payload, 42);
    pthread_join(thread, NULL);
}

static void *raiser(void *arg)
{
    (void)arg;
    store_release64(&word, 1);
    wait_ways_kernel.wake(NULL, low_half(&word), INT32_MAX);
    return NULL;
}

/* The real ways, against the kernel. */
static void kernel_ways(void **state)
{
    (void)state;
    const struct wait_ways *k = &wait_ways_kernel;
    uint64_t before = k->now(k->arg);
    struct futex_word two[] = { { low_half(&word), 0 }, { &news, 0 } };
    k->yield(k->arg);
    assert_true(k->now(k->arg) >= before);
    assert_int_equal(k->wake(k->arg, low_half(&word), INT32_MAX), 0);
    assert_int_equal(k->sleep(k->arg, two, 1, 1000), -ETIMEDOUT);
    int r = k->sleep(k->arg, two, 2, 1000);
    assert_true(r == -ETIMEDOUT || r == -ENOSYS);
    /* A word that is not what was seen: no sleep, however long it was to be. */
    store_release64(&word, 9);
    assert_true(k->sleep(k->arg, two, 1, UINT64_C(1) << 40) >= -EAGAIN);
    if (r != -ENOSYS)
        k->sleep(k->arg, two, 2, UINT64_C(1) << 40);
    fresh(state);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, raiser, NULL), 0);
    while (load_acquire64(&word) == 0)
        k->sleep(k->arg, two, 1, UINT64_C(1) << 40);
    pthread_join(thread, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(there_already, fresh),
        cmocka_unit_test_setup(a_budget_is_a_bound, fresh),
        cmocka_unit_test_setup(comes_while_yielding, fresh),
        cmocka_unit_test_setup(looks_on_before_a_yield, fresh),
        cmocka_unit_test_setup(ends_end_it, fresh),
        cmocka_unit_test_setup(yielding_is_bounded_in_time, fresh),
        cmocka_unit_test_setup(spins_by_the_clock, fresh),
        cmocka_unit_test_setup(yields_follow_the_sleeps, fresh),
        cmocka_unit_test_setup(turns_spend_the_same_budget, fresh),
        cmocka_unit_test_setup(pace_is_learned, fresh),
        cmocka_unit_test_setup(slices_of_a_wait, fresh),
        cmocka_unit_test_setup(others_have_their_turn, fresh),
        cmocka_unit_test_setup(whole_words, fresh),
        cmocka_unit_test_setup(spins_until_it_comes, fresh),
        cmocka_unit_test_setup(kernel_ways, fresh),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
