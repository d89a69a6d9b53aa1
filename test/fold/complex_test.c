/* Complex numbers in every instruction set against arithmetic written out part by part: specials in
 * every combination, numbers whose products do not fit, so that a fused multiply-add would show,
 * and all lengths and places. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"
#include "rig.h"

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

static void any_length_place_and_alignment(void **state)
{
    static const tutti_op ops[] = {TUTTI_SUM, TUTTI_PROD, TUTTI_AVG};
    static const int      ranks[] = {1, 2, 3, 4, 5, 20};
    tutti_type            type = *(const tutti_type *)*state;
    for (size_t o = 0; o < LENGTH(ops); o++)
        for (size_t k = 0; k < LENGTH(ranks); k++)
            for (int round = 0; round < 3; round++)
                rig_random(type, ops[o], ranks[k], round == 1 ? 7 : ranks[k], 1000);
}

/* Every product, and sum, of two numbers whose parts are any of these. */
static void specials_in_every_combination(void **state)
{
    static const double parts[] = {
        0.0, -0.0, 1, -1, 0x1.8p-1, -0x1.555556p+3, 0x1p-149, -0x1p-1074, 0x1.fffffep127, -0x1p1023,
        INFINITY, -INFINITY, NAN, 0x1.000002p0
    };
    enum { PARTS = sizeof parts / sizeof parts[0], ALL = PARTS * PARTS * PARTS * PARTS };
    static const tutti_op ops[] = {TUTTI_PROD, TUTTI_SUM, TUTTI_PREMUL_SUM};
    tutti_type            type = *(const tutti_type *)*state;
    size_t                size = model_size(type), part = size / 2;
    uint8_t *a = malloc(3 * ALL * size), *b = a + ALL * size, *expected = b + ALL * size;
    assert_non_null(a);
    for (size_t i = 0; i < ALL; i++) {
        model_put(a + i * size, model_bits(parts[i % PARTS], type), part);
        model_put(a + i * size + part, model_bits(parts[i / PARTS % PARTS], type), part);
        model_put(b + i * size, model_bits(parts[i / PARTS / PARTS % PARTS], type), part);
        model_put(b + i * size + part, model_bits(parts[i / PARTS / PARTS / PARTS], type), part);
    }
    for (size_t o = 0; o < LENGTH(ops); o++) {
        /* Factors: one special combination for the first, another for the second. */
        struct rig rig = {
            .type = type, .op = ops[o], .n = 2, .divisor = 2, .count = ALL, .source = {a, b},
            .factor = {a + 31 * size, b + 9 * PARTS * PARTS * size}, .expected = expected
        };
        for (size_t i = 0; i < ALL; i++) {
            const uint8_t *values[] = {a + i * size, b + i * size};
            model_fold(expected + i * size, values, ops[o] == TUTTI_PREMUL_SUM ? rig.factor : NULL,
                       2, 2, type, ops[o]);
        }
        rig_all(&rig);
    }
    free(a);
}

/* By hand, so that the model is held to something too. */
static void what_the_contract_says(void **state)
{
    const float        eps = 0x1p-12f;
    static const float a[][2] = {{1, 2}, {INFINITY, 0}, {1 + 0x1p-12f, 1}, {0, 0}, {-0.0f, 0}};
    const float        b[][2] = {{3, 4}, {1, 0}, {1 + eps, 1 + 2 * eps}, {-1, -0.0f}, {1, 0}};
    const float        is[][2] = {
        {-5, 10},
        {INFINITY, NAN},      /* inf x 0 + 0 x 1: Annex G would make it (inf, ...) */
        /* 1 + 2 eps + eps^2 rounds to 1 + 2 eps before 1 + 2 eps is taken away; fused: eps^2 */
        {0, 2 + 4 * eps},
        {0, -0.0f},           /* 0 x -1 - 0 x -0 = -0 + 0 = 0; 0 x -0 + 0 x -1 = -0 */
        {-0.0f, 0},           /* -0 x 1 - 0 x 0 = -0; -0 x 0 + 0 x 1 = 0 */
    };
    uint32_t   bits[LENGTH(a)][2];
    struct rig rig = {.type = TUTTI_C64, .op = TUTTI_PROD, .n = 2, .divisor = 2, .count = LENGTH(a),
                      .source = {(const uint8_t *)a, (const uint8_t *)b},
                      .expected = (const uint8_t *)bits };
    (void)state;
    memcpy(bits, is, sizeof bits);
    bits[1][1] = 0x7fc00000;
    rig_all(&rig);
}

static const tutti_type c64 = TUTTI_C64, c128 = TUTTI_C128;

#define BOTH(test)                                                                                 \
    {#test " c64", test, NULL, NULL, (void *)(uintptr_t)&c64}, {#test " c128", test, NULL, NULL,   \
                                                                (void *)(uintptr_t)&c128}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_contract_says),
        BOTH(specials_in_every_combination),
        BOTH(any_length_place_and_alignment),
    };
    return cmocka_run_group_tests_name("complex", tests, NULL, NULL);
}
