/* TUTTI_PREMUL_SUM of every type in every instruction set against the model: any number of ranks,
 * more than the walk keeps factors of, all lengths and places, factors at odd addresses; and what
 * is refused. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "model.h"
#include "rig.h"

enum { TYPES = TUTTI_F8E5M2 + 1 };

static const char *const isas[] = {"plain", "avx2", "avx512", "neon"};

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

static void every_type_is_scaled_like_the_model(void **state)
{
    static const int ranks[] = {1, 2, 3, 4, 5, 16, 17, 33};
    tutti_type       type = *(const tutti_type *)*state;
    for (size_t k = 0; k < LENGTH(ranks); k++)
        for (int round = 0; round < 4; round++)
            rig_random(type, TUTTI_PREMUL_SUM, ranks[k], 1, 1000);
}

/* (1 + 2^-12)^2 = 1 + 2^-11 + 2^-24 rounds to 1 + 2^-11 before anything is added; fused, 2^-24
 * would be left. */
static void a_product_is_rounded_before_it_is_added(void **state)
{
    const float a = 1 + 0x1p-12f, b = -(1 + 0x1p-11f), one = 1;
    const void *src[] = {&b, &a}, *factor[] = {&one, &a};
    (void)state;
    for (size_t i = 0; i < LENGTH(isas); i++) {
        fold_scaled_fn *fn = fold_find_scaled_isa(isas[i], TUTTI_F32);
        float           got = 7;
        if (!fn)
            continue;
        fn(&got, src, factor, 2, 1);
        assert_true(got == 0);
    }
}

/* f16: 1 + 2^-11 + 2^-11: products and sums stay in f32, so both halves of the last place count.
 * f8: 3 x 0.5 of the smallest. */
static void small_types_round_once(void **state)
{
    const uint16_t one = 0x3c00, tiny = 0x1000, half = 0x3800, small = 0x1400;
    const void    *src[] = {&one, &tiny, &small}, *factor[] = {&one, &one, &half};
    const uint8_t  least = 0x01, half8 = 0x30;
    const void    *src8[] = {&least, &least, &least}, *factor8[] = {&half8, &half8, &half8};
    (void)state;
    for (size_t i = 0; i < LENGTH(isas); i++) {
        uint16_t got = 0;
        uint8_t  got8 = 0;
        if (!fold_find_scaled_isa(isas[i], TUTTI_F16))
            continue;
        fold_find_scaled_isa(isas[i], TUTTI_F16)(&got, src, factor, 3, 1);
        assert_int_equal(got, 0x3c01);
        fold_find_scaled_isa(isas[i], TUTTI_F8E4M3)(&got8, src8, factor8, 3, 1);
        assert_int_equal(got8, 0x02);
    }
}

static void all_sets_are_complete_and_the_best_is_found(void **state)
{
    (void)state;
    for (int t = 0; t < TYPES; t++) {
        for (size_t i = 0; i < LENGTH(isas); i++) {
            int there = fold_find_isa(isas[i], TUTTI_F32, TUTTI_SUM) != NULL;
            assert_int_equal(fold_find_scaled_isa(isas[i], (tutti_type)t) != NULL,
                             there && t != TUTTI_BOOL);
        }
        assert_ptr_equal(fold_find_scaled((tutti_type)t, NULL),
                         fold_find_scaled_isa(fold_isa(), (tutti_type)t));
    }
    assert_null(fold_find_scaled_isa("sse9", TUTTI_F32));
    assert_null(fold_find_scaled_isa("plain", (tutti_type)TYPES));
    assert_null(fold_find_scaled_isa("plain", (tutti_type)-1));
}

static void refusals_give_a_reason(void **state)
{
    const char *why;
    (void)state;
    for (int t = -1; t <= TYPES + 1; t++) {
        why = "untouched";
        fold_scaled_fn *fn = fold_find_scaled((tutti_type)t, &why);
        assert_int_equal(fn != NULL, t >= 0 && t < TYPES && t != TUTTI_BOOL);
        assert_true(fn ? why == NULL : why != NULL && strchr(why, ';') != NULL);
        assert_null(fold_find((tutti_type)t, TUTTI_PREMUL_SUM, &why));
        assert_non_null(why);
    }
    assert_null(fold_find_scaled(TUTTI_BOOL, &why));
    assert_non_null(strstr(why, "bool"));
    assert_null(fold_find(TUTTI_F32, TUTTI_PREMUL_SUM, &why));
    assert_non_null(strstr(why, "needs a factor"));
}

int main(void)
{
    static tutti_type numbers[TYPES];
    static char       names[TYPES][64];
    struct CMUnitTest types[TYPES - 1] = {{0}};
    size_t            count = 0;
    for (int t = 0; t < TYPES; t++) {
        numbers[t] = (tutti_type)t;
        snprintf(names[t], sizeof names[t], "every_type_is_scaled_like_the_model %s",
                 fold_type_name((tutti_type)t));
        if (t != TUTTI_BOOL)
            types[count++] = (struct CMUnitTest){
                names[t], every_type_is_scaled_like_the_model, NULL, NULL, &numbers[t]
            };
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_sets_are_complete_and_the_best_is_found),
        cmocka_unit_test(refusals_give_a_reason),
        cmocka_unit_test(a_product_is_rounded_before_it_is_added),
        cmocka_unit_test(small_types_round_once),
    };
    int failed = cmocka_run_group_tests_name("scaled", tests, NULL, NULL);
    return failed + cmocka_run_group_tests_name("scaled by type", types, NULL, NULL);
}
