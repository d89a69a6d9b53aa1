/* From measured ratios to rules: what is clear moves a threshold, noise does not, a crowd has its
 * own, and the rules choose as decided. */
#include "cli/doctor_tune.h"

#include "coll/select.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { REDUCE = 1, ALL_REDUCE = 2, GATHER = 5, LINE_EAGER = 0, EAGER_RING = 1 };

static struct tune_team teams[3];
static struct tune_change changes[TUNE_CHANGES];
static struct rules rules, built_in;

/* Two teams that fit and a crowd; every ratio 1, which says nothing. */
static void even(void)
{
    static const struct {
        int ranks;
        bool crowded;
    } who[] = { { 2, false }, { 8, false }, { 32, true } };
    for (int t = 0; t < 3; t++) {
        teams[t].ranks = who[t].ranks;
        teams[t].crowded = who[t].crowded;
        for (int k = 0; k < TUNE_KINDS; k++)
            for (int p = 0; p < TUNE_PAIRS; p++)
                for (int i = 0; i < TUNE_SIZES; i++) {
                    teams[t].cell[k][p][i].rounds = TUNE_ROUNDS;
                    for (int r = 0; r < TUNE_ROUNDS; r++)
                        teams[t].cell[k][p][i].ratio[r] = 1;
                }
    }
}

static void set(int team, int kind, int pair, size_t bytes, double ratio)
{
    for (int i = 0; i < TUNE_SIZES; i++)
        for (int r = 0; r < TUNE_ROUNDS && tune_pairs[pair].sizes[i] == bytes; r++)
            teams[team].cell[kind][pair][i].ratio[r] = ratio + 0.001 * r;
}

/* The rules of what is decided, laid over the default; held against the default with `given`
 * laid over it. */
static int decide_from(const char *given)
{
    char text[RULES_TEXT], said[200];
    struct text t = TEXT_IN(text), why = TEXT_IN(said);
    text_clear(&why);
    assert_int_equal(select_parse(&built_in, given, &why), 0);
    int n = tune_decide(&built_in, teams, 3, changes);
    tune_write_rules(changes, n, &t);
    text_clear(&why);
    assert_int_equal(select_parse(&rules, text, &why), 0);
    return n;
}

static int decide(void) { return decide_from(NULL); }

static const char *by(enum kind kind, bool crowded, size_t bytes)
{
    return select_algorithm(&rules, kind, crowded, bytes)->name;
}

static void test_nothing_is_nothing(void **state)
{
    (void)state;
    even();
    assert_int_equal(decide(), 0);
    memset(teams, 0, sizeof teams);                  /* not measured */
    assert_int_equal(decide(), 0);
}

static void test_a_threshold_goes_down(void **state)
{
    (void)state;
    even();
    set(0, REDUCE, EAGER_RING, 65536, 0.5);
    set(0, REDUCE, EAGER_RING, 16384, 0.8);          /* 32768 says nothing, and is passed over */
    assert_int_equal(decide(), 1);
    assert_int_equal(changes[0].from, 8193);
    assert_int_equal(changes[0].to, 65536);
    assert_int_equal(changes[0].at, 65536);
    assert_true(changes[0].gain > 1.9 && changes[0].gain < 2.1 && changes[0].low <= changes[0].gain
                && changes[0].gain <= changes[0].high);
    assert_string_equal(by(KIND_REDUCE, false, 8192), "eager");
    assert_string_equal(by(KIND_REDUCE, false, 8193), "pipelined");
    assert_string_equal(by(KIND_REDUCE, true, 8193), "eager");      /* the crowd has said nothing */
    assert_string_equal(by(KIND_REDUCE, false, 88), "inline");
    assert_string_equal(by(KIND_ALL_REDUCE, false, 16384), "eager");
}

static void test_a_threshold_goes_up(void **state)
{
    (void)state;
    even();
    set(1, GATHER, EAGER_RING, 65536, 1.3);
    set(2, GATHER, EAGER_RING, 65536, 1.3);
    assert_int_equal(decide_from("gather:-88=inline,-32k=eager,-inf=pipelined"), 2);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(changes[i].kind, KIND_GATHER);
        assert_int_equal(changes[i].crowded, i);
        assert_int_equal(changes[i].from, 32769);
        assert_int_equal(changes[i].to, 65536);
        assert_string_equal(changes[i].name, "eager");
    }
    assert_string_equal(by(KIND_GATHER, false, 65536), "eager");
    assert_string_equal(by(KIND_GATHER, false, 65537), "pipelined");
}

static void test_the_smallest_ones(void **state)
{
    (void)state;
    even();
    for (int t = 0; t < 3; t++) {
        set(t, REDUCE, LINE_EAGER, 88, 0.7);
        set(t, REDUCE, LINE_EAGER, 40, 0.7);
        set(t, REDUCE, LINE_EAGER, 8, 0.7);
        for (int i = 0; i < TUNE_SIZES; i++)
            set(t, REDUCE, EAGER_RING, tune_pairs[EAGER_RING].sizes[i], 0.7);
    }
    assert_int_equal(decide(), 4);
    assert_string_equal(by(KIND_REDUCE, false, 88), "eager");
    assert_string_equal(by(KIND_REDUCE, true, 1), "eager");
    assert_string_equal(by(KIND_REDUCE, false, 89), "pipelined");
}

static void test_a_crowd_alone(void **state)
{
    (void)state;
    even();
    set(2, REDUCE, EAGER_RING, 65536, 0.5);
    assert_int_equal(decide(), 1);
    assert_string_equal(by(KIND_REDUCE, true, 65536), "pipelined");
    assert_string_equal(by(KIND_REDUCE, false, 65536), "eager");
}

static void test_what_is_not_clear_moves_nothing(void **state)
{
    (void)state;
    even();
    set(0, REDUCE, EAGER_RING, 65536, 0.97);      /* all rounds, but by little */
    set(0, ALL_REDUCE, EAGER_RING, 32768, 0.5);
    set(1, ALL_REDUCE, EAGER_RING, 32768, 1.5);   /* teams contradict each other */
    assert_int_equal(decide(), 0);
    even();
    set(0, REDUCE, EAGER_RING, 65536, 0.5);       /* more rounds say otherwise than may be spoilt */
    for (int r = 0; r <= TUNE_ROUNDS / 10; r++)
        teams[0].cell[REDUCE][EAGER_RING][TUNE_SIZES - 1].ratio[r] = 1.2;
    assert_int_equal(decide(), 0);
    teams[0].cell[REDUCE][EAGER_RING][TUNE_SIZES - 1].ratio[0] = 0.5;        /* as many */
    assert_int_equal(decide(), 1);
    even();
    set(0, REDUCE, EAGER_RING, 8192, 0.5);        /* beyond a size that is better as it is */
    set(0, REDUCE, EAGER_RING, 32768, 1.5);
    assert_int_equal(decide(), 0);
}

static void test_rules_that_do_not_fit_are_left_out_whole(void **state)
{
    (void)state;
    char small[60], said[200];
    struct text t = TEXT_IN(small), why = TEXT_IN(said);
    even();
    for (int k = 0; k < TUNE_KINDS; k++)
        set(0, k, EAGER_RING, 32768, 0.5);
    text_clear(&why);
    assert_int_equal(select_parse(&built_in, NULL, &why), 0);
    int n = tune_decide(&built_in, teams, 3, changes);
    assert_true(n >= TUNE_KINDS - 4);
    tune_write_rules(changes, n, &t);
    text_clear(&why);
    assert_int_equal(select_parse(&rules, small, &why), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_is_nothing),
        cmocka_unit_test(test_a_threshold_goes_down),
        cmocka_unit_test(test_a_threshold_goes_up),
        cmocka_unit_test(test_the_smallest_ones),
        cmocka_unit_test(test_a_crowd_alone),
        cmocka_unit_test(test_what_is_not_clear_moves_nothing),
        cmocka_unit_test(test_rules_that_do_not_fit_are_left_out_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
