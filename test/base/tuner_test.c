/* Which way is chosen, when told what each takes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/epochs.h"
#include "base/tuner.h"

enum { WORTH = 6, BYTES = 1024, MANY = 640, TRIED = MANY / 64 + 4 };

/* How many of so many went the second way, where the first takes so many ticks and the second so
 * many. less: what it has to save, 0: WORTH times. */
static int run_by(struct tuner *e, uint64_t less, int calls, uint64_t first, uint64_t second)
{
    int n = 0;
    for (int i = 0; i < calls; i++) {
        bool chosen = less ? tuner_choose_less(e, less) : tuner_choose(e, WORTH);
        n += chosen;
        tuner_learn(e, chosen, chosen ? second : first, BYTES);
    }
    return n;
}

static int run(struct tuner *e, int calls, uint64_t first, uint64_t second)
{
    return run_by(e, 0, calls, first, second);
}

/* The second way is taken where it is so many times faster, and not where it is only faster; either
 * gets its tries. */
static void test_cost(void **state)
{
    (void)state;
    struct tuner far = { { 0, 0 }, 0 }, near = { { 0, 0 }, 0 };
    assert_in_range(run(&far, MANY, 1600, 100), MANY - TRIED, MANY - 2);
    assert_in_range(run(&near, MANY, 400, 100), 4, TRIED);
}

/* The second way is taken where it saves so much, however much both take beside. */
static void test_less(void **state)
{
    (void)state;
    struct tuner cold = { { 0, 0 }, 0 }, hot = { { 0, 0 }, 0 }, near = { { 0, 0 }, 0 };
    assert_in_range(run_by(&cold, 300, MANY, 1900, 1500), MANY - TRIED, MANY - 2);
    assert_in_range(run_by(&hot, 300, MANY, 500, 100), MANY - TRIED, MANY - 2);
    assert_in_range(run_by(&near, 300, MANY, 390, 100), 1, TRIED);
}

/* What takes now this, now that counts as what it takes on the whole; who was held up now and then
 * is believed no slower; and a change is seen soon. */
static void test_mean(void **state)
{
    (void)state;
    struct tuner e = { { 0, 0 }, 0 };
    for (int i = 0; i < MANY; i++)
        tuner_learn_mean(&e, false, i % 2 ? 100 : 1000, BYTES);
    assert_in_range(e.cost[0], 300, 700);
    for (int i = 0; i < 24; i++)
        tuner_learn_mean(&e, false, 100, BYTES);
    assert_in_range(e.cost[0], 100, 110);
    for (int i = 0; i < MANY; i++) {
        tuner_learn_mean(&e, false, i % 16 ? 100 : 1000000, BYTES);
        assert_in_range(e.cost[0], 95, 150);
    }
    for (int i = 0; i < 24; i++)
        tuner_learn_mean(&e, false, 1000, BYTES);
    assert_in_range(e.cost[0], 900, 1001);
}

/* What takes several times as long gets two tries, one more, and then as much fewer; what takes a
 * little longer gets all of them. */
static void test_dear(void **state)
{
    (void)state;
    enum { LONG = 8 * 64 * TUNER_SELDOM };
    struct tuner dear = { { 0, 0 }, 0 }, other = { { 0, 0 }, 0 }, near = { { 0, 0 }, 0 };
    assert_int_equal(run(&dear, TUNER_TRIES, 100, 1000), 2);
    assert_int_equal(run(&dear, LONG - TUNER_TRIES, 100, 1000), 8);
    assert_int_equal(run(&other, TUNER_TRIES, 1000, 100), TUNER_TRIES - 2);
    assert_int_equal(run(&other, LONG - TUNER_TRIES, 1000, 100), LONG - TUNER_TRIES - 8);
    assert_int_equal(run(&near, TUNER_TRIES, 100, 150), 4);
    assert_int_equal(run(&near, LONG - TUNER_TRIES, 100, 150), LONG / TUNER_AGAIN - 1);
}

/* What was true once is not believed for ever, of neither way. */
static void test_changes(void **state)
{
    (void)state;
    struct tuner e = { { 0, 0 }, 0 };
    run(&e, 200, 50, 100);
    run(&e, 400, 1600, 100);
    assert_in_range(run(&e, MANY, 1600, 100), MANY - TRIED, MANY);
    run(&e, TUNER_AGAIN * TUNER_SELDOM, 50, 100);
    assert_in_range(run(&e, MANY, 50, 100), 0, TRIED);
}

/* One that was held up, or went through pages that were not there yet, decides nothing for long. */
static void test_held_up(void **state)
{
    (void)state;
    struct tuner e = { { 0, 0 }, 0 };
    tuner_learn(&e, false, 100000, BYTES);
    run(&e, 64, 200, 100);
    tuner_learn(&e, false, 100000, BYTES);
    assert_in_range(run(&e, MANY, 200, 100), 0, TRIED);
}

/* Sizes decide for themselves, class by class; the largest are one. */
static void test_classes(void **state)
{
    (void)state;
    struct tuner classes[TUNER_CLASSES] = { { { 0, 0 }, 0 } };
    assert_null(tuner_of(classes, 4095, 4096));
    assert_null(tuner_of(classes, 0, 4096));
    assert_ptr_equal(tuner_of(classes, 4096, 4096), &classes[0]);
    assert_ptr_equal(tuner_of(classes, 8191, 4096), &classes[0]);
    assert_ptr_equal(tuner_of(classes, 8192, 4096), &classes[1]);
    assert_ptr_equal(tuner_of(classes, SIZE_MAX, 4096), &classes[TUNER_CLASSES - 1]);
}

/* A larger class begins with what one below has found, and goes on by itself. */
static void test_inherited(void **state)
{
    (void)state;
    struct tuner classes[TUNER_CLASSES] = { { { 0, 0 }, 0 } };
    run(tuner_of(classes, 4096, 4096), 2, 1600, 100);
    assert_int_equal(tuner_of(classes, 16384, 4096)->n, 0);
    run(tuner_of(classes, 4096, 4096), 20, 1600, 100);
    struct tuner *next = tuner_of(classes, 16384, 4096);
    assert_int_equal(run(next, 4, 1600, 100), 4);
    assert_int_equal(run(next, 16, 1600, 100), 15);                  /* the other is tried soon */
    assert_int_equal(tuner_of(classes, 16384, 4096)->n, TUNER_SOON + 20);     /* once */
    assert_int_equal(tuner_of(classes, 8192, 4096)->cost[0], classes[0].cost[0]);
    run(next, 200, 300, 3000);
    assert_in_range(run(next, MANY, 300, 3000), 0, TRIED);
}

/* Epochs of the given ticks an operation, with it and without it. Returns how many went with it. */
static int epochs_run(struct epochs *e, int epochs, uint64_t with, uint64_t without)
{
    int on = 0;
    for (int i = 0; i < epochs; i++) {
        bool off = e->off;
        on += !off;
        for (uint32_t n = 0, all = epochs_length(e); n < all; n++) {
            assert_int_equal(e->off, off);
            /* the beginning takes as long as it likes */
            epochs_learn(e, n < EPOCH_BEGINNING ? 1000000 : off ? without : with, 4096);
        }
        assert_int_equal(e->n, 0);
    }
    return on;
}

/* A hundred operations try nothing. Then both are tried, and the faster stays, until it is the
 * slower one. */
static void test_epochs(void **state)
{
    (void)state;
    struct epochs e = { 0 };
    for (int n = 0; n < 110; n++, assert_false(e.off))
        epochs_learn(&e, 100, 4096);
    e = (struct epochs){ 0 };
    assert_false(e.off);
    assert_in_range(epochs_run(&e, TUNER_TRIES, 100, 400), 4, 5);
    assert_int_equal(epochs_run(&e, 40, 100, 400), 40);
    epochs_run(&e, 200, 400, 100);
    assert_true(e.off);
    assert_in_range(epochs_run(&e, MANY, 400, 100), 0, TRIED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cost), cmocka_unit_test(test_less), cmocka_unit_test(test_mean),
        cmocka_unit_test(test_dear), cmocka_unit_test(test_changes), cmocka_unit_test(test_held_up),
        cmocka_unit_test(test_classes), cmocka_unit_test(test_inherited),
        cmocka_unit_test(test_epochs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
