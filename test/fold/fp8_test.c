/* 8-bit floats: every code, every pair of codes, every border at which rounding changes its mind.
 * First the conversions themselves, in the width that plain uses, with f32 values one unit beside
 * each border; then the kernels of every instruction set. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LANES_BYTES 16
#include "fold/vector.h"
#include "fold/fp8.h"
#include "model.h"
#include "rig.h"

enum { CODES = 256, PAIRS = CODES * CODES };

static const tutti_op all_ops[] = {TUTTI_SUM, TUTTI_PROD, TUTTI_MIN, TUTTI_MAX, TUTTI_AVG};

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* ---- conversions ---- */

static void every_code_widens_exactly(void **state)
{
    tutti_type type = *(const tutti_type *)*state;
    for (unsigned code = 0; code < CODES; code++) {
        vec    byte = vector_all_32(code);
        f32v   got = (f32v)(type == TUTTI_F8E4M3 ? fp8_wide_e4m3(byte) : fp8_wide_e5m2(byte));
        double want = model_value(code, type);
        for (size_t i = 0; i < LANES_BYTES / 4; i++)
            if (isnan(want))
                assert_true(isnan((double)got[i]));
            else
                assert_int_equal(bits_of(got[i]), bits_of((float)want));
    }
}

static void check_narrow(tutti_type type, uint32_t bits)
{
    vec      v = vector_all_32(bits);
    u32v     got = (u32v)(type == TUTTI_F8E4M3 ? fp8_round_e4m3(v) : fp8_round_e5m2(v));
    uint64_t want = model_bits((double)from_bits(bits), type);
    for (size_t i = 0; i < LANES_BYTES / 4; i++)
        if (got[i] != want)
            fail_msg("f32 0x%08x (%a) became 0x%02x, not 0x%02x", (unsigned)bits,
                     (double)from_bits(bits), (unsigned)got[i], (unsigned)want);
}

/* Around each number and each point halfway to the next one, on both sides, in steps of f32. After
 * the largest number comes what would be next, so the border of overflow is among them. */
static void every_border_rounds_to_nearest_even(void **state)
{
    tutti_type type = *(const tutti_type *)*state;
    for (unsigned code = 0; code < model_beyond(type); code++) {
        double here = model_magnitude(code, type), next = model_magnitude(code + 1, type);
        for (uint32_t sign = 0; sign <= 1; sign++)
            for (uint32_t step = 0; step <= 6; step++) {
                uint32_t middle = bits_of((float)((here + next) / 2)), start = bits_of((float)here),
                         end = bits_of((float)next);
                check_narrow(type, sign << 31 | (middle + step - 3));
                check_narrow(type, sign << 31 | (start >= 3 ? start + step - 3 : start + step));
                check_narrow(type, sign << 31 | (end + step - 3));
            }
    }
}

static void all_over_f32(void **state)
{
    static const uint32_t odd[] = {
        0x7f7fffff, 0x7f800000, 0xff7fffff, 0xff800000, 0x7f800001, 0x7fffffff, 0xffffffff,
        0x7fc00000, 0xffc00000, 1, 0x80000001, 0x007fffff, 0x80800000, 0x80000000
    };
    tutti_type type = *(const tutti_type *)*state;
    for (uint64_t bits = 0; bits <= UINT32_MAX; bits += 1499)
        check_narrow(type, (uint32_t)bits);
    for (size_t i = 0; i < LENGTH(odd); i++)
        check_narrow(type, odd[i]);
}

/* ---- kernels ---- */

static uint8_t first[PAIRS], second[PAIRS], third[PAIRS], expected[PAIRS];

static void pairs(void)
{
    for (unsigned i = 0; i < PAIRS; i++) {
        first[i] = (uint8_t)(i / CODES);
        second[i] = (uint8_t)i;
    }
}

static void compare(tutti_type type, tutti_op op, int n, int divisor)
{
    struct rig rig = {
        .type = type, .op = op, .n = n, .divisor = divisor, .count = PAIRS,
        .source = {first, second, third}, .expected = expected
    };
    for (size_t i = 0; i < PAIRS; i++) {
        const uint8_t *values[] = {first + i, second + i, third + i};
        model_fold(expected + i, values, NULL, n, divisor, type, op);
    }
    rig_all(&rig);
}

static void every_code_comes_back(void **state)
{
    tutti_type type = *(const tutti_type *)*state;
    pairs();
    for (size_t o = 0; o < LENGTH(all_ops); o++) {
        compare(type, all_ops[o], 1, 1);
        for (unsigned i = 0; i < PAIRS; i++)
            assert_int_equal(expected[i],
                             isnan(model_value(first[i], type))
                                 ? (type == TUTTI_F8E4M3 ? 0x7f : 0x7e)
                                 : first[i]);
    }
}

static void every_pair_of_codes(void **state)
{
    tutti_type type = *(const tutti_type *)*state;
    pairs();
    for (size_t o = 0; o < LENGTH(all_ops); o++)
        compare(type, all_ops[o], 2, 2);
}

/* Quotients fill f32's fraction, and so do sums of far apart numbers: what is rounded is no longer
 * a halfway point of few bits. */
static void every_pair_with_a_third(void **state)
{
    static const uint8_t thirds[] = {0x01, 0x81, 0x08, 0x33, 0xb8, 0x77, 0xfb};
    static const int     divisors[] = {1, 3, 7, 10};
    tutti_type           type = *(const tutti_type *)*state;
    pairs();
    for (size_t t = 0; t < LENGTH(thirds); t++) {
        memset(third, thirds[t], sizeof third);
        for (size_t o = 0; o < LENGTH(all_ops); o++)
            compare(type, all_ops[o], 3, divisors[t % LENGTH(divisors)]);
    }
}

/* A number, half the gap above it, and any tiny product beside: where the tiny one is nothing to
 * f32 the tie goes to the even code, where it is something it decides. */
static void every_halfway_point(void **state)
{
    tutti_type type = *(const tutti_type *)*state;
    size_t     ties = 0;
    uint8_t    factor[3] = {(uint8_t)model_bits(1, type), (uint8_t)model_bits(0.5, type), 0};
    for (unsigned power = 0; power < 12; power++)
        for (int sign = 0; sign <= 1; sign++) {
            factor[0] = (uint8_t)model_bits(sign ? -1 : 1, type);
            factor[1] = (uint8_t)model_bits(sign ? -0.5 : 0.5, type);
            factor[2] = (uint8_t)model_bits(model_magnitude(1, type) * ldexp(1, (int)power), type);
            for (unsigned i = 0; i < PAIRS; i++) {
                unsigned code = i / CODES % model_beyond(type);
                double   gap = model_magnitude(code + 1, type) - model_magnitude(code, type);
                first[i] = (uint8_t)code;
                second[i] = (uint8_t)model_bits(gap, type);
                third[i] = (uint8_t)i;
                assert_true(model_value(second[i], type) == gap);
                ties += third[i] == 0;
            }
            struct rig rig = {
                .type = type, .op = TUTTI_PREMUL_SUM, .n = 3, .count = PAIRS,
                .source = {first, second, third},
                .factor = {factor, factor + 1, factor + 2}, .expected = expected
            };
            for (size_t i = 0; i < PAIRS; i++) {
                const uint8_t *values[] = {first + i, second + i, third + i};
                model_fold(expected + i, values, rig.factor, 3, 1, type, TUTTI_PREMUL_SUM);
            }
            rig_all(&rig);
        }
    assert_true(ties > 12 * 2 * 100);
}

static void any_length_place_and_alignment(void **state)
{
    static const int ranks[] = {1, 2, 3, 4, 5, 33};
    tutti_type       type = *(const tutti_type *)*state;
    for (size_t o = 0; o < LENGTH(all_ops); o++)
        for (size_t k = 0; k < LENGTH(ranks); k++)
            rig_random(type, all_ops[o], ranks[k], ranks[k], 1000);
}

/* By hand, so that the model is held to something too. */
static void what_the_formats_say(void **state)
{
    static const struct {
        tutti_type type;
        tutti_op   op;
        uint8_t    a, b, is;
    } rows[] = {
        {TUTTI_F8E4M3, TUTTI_SUM, 0x7e, 0x58, 0x7e},  /* 448 + 16 = 464: a tie, to 448 */
        {TUTTI_F8E4M3, TUTTI_SUM, 0x7e, 0x59, 0x7f},  /* 448 + 18: too large */
        {TUTTI_F8E4M3, TUTTI_SUM, 0xfe, 0xd9, 0x7f},  /* the one NaN has no sign */
        {TUTTI_F8E4M3, TUTTI_PROD, 0x38, 0xb8, 0xb8}, /* 1 x -1 */
        {TUTTI_F8E4M3, TUTTI_PROD, 0x01, 0x30, 0x00}, /* half of the smallest: a tie, to 0 */
        {TUTTI_F8E4M3, TUTTI_PROD, 0x03, 0x30, 0x02}, /* 1.5 of the smallest: a tie, to 2 */
        {TUTTI_F8E4M3, TUTTI_PROD, 0x81, 0x30, 0x80},
        {TUTTI_F8E4M3, TUTTI_SUM, 0x07, 0x01, 0x08},  /* denormals to the smallest normal */
        {TUTTI_F8E4M3, TUTTI_MIN, 0x00, 0x80, 0x80},  {TUTTI_F8E4M3, TUTTI_MAX, 0x80, 0x00, 0x00},
        {TUTTI_F8E4M3, TUTTI_MIN, 0xff, 0xfe, 0x7f},  {TUTTI_F8E4M3, TUTTI_MAX, 0xff, 0x7e, 0x7f},
        {TUTTI_F8E5M2, TUTTI_SUM, 0x7b, 0x6b, 0x7b},  /* 57344 + 3584: not yet halfway to 65536 */
        /* 57344 + 4096: a tie, to the even code, infinity's */
        {TUTTI_F8E5M2, TUTTI_SUM, 0x7b, 0x6c, 0x7c},
        {TUTTI_F8E5M2, TUTTI_SUM, 0xfb, 0xfb, 0xfc},  {TUTTI_F8E5M2, TUTTI_SUM, 0x7c, 0xfc, 0x7e},
        {TUTTI_F8E5M2, TUTTI_PROD, 0xfc, 0x00, 0x7e}, {TUTTI_F8E5M2, TUTTI_PROD, 0x01, 0x38, 0x00},
        {TUTTI_F8E5M2, TUTTI_PROD, 0x03, 0x38, 0x02}, {TUTTI_F8E5M2, TUTTI_SUM, 0x03, 0x01, 0x04},
        {TUTTI_F8E5M2, TUTTI_MIN, 0xfd, 0xfc, 0x7e},  {TUTTI_F8E5M2, TUTTI_MAX, 0xff, 0x7c, 0x7e},
        {TUTTI_F8E5M2, TUTTI_MAX, 0x80, 0x00, 0x00},
    };
    (void)state;
    for (size_t i = 0; i < LENGTH(rows); i++) {
        struct rig rig = {.type = rows[i].type, .op = rows[i].op, .n = 2, .divisor = 2, .count = 1,
                          .source = {&rows[i].a, &rows[i].b}, .expected = &rows[i].is};
        rig_all(&rig);
    }
}

static const tutti_type e4m3 = TUTTI_F8E4M3, e5m2 = TUTTI_F8E5M2;

#define BOTH(test)                                                                                 \
    {#test " e4m3", test, NULL, NULL, (void *)(uintptr_t)&e4m3}, {#test " e5m2", test, NULL, NULL, \
                                                                  (void *)(uintptr_t)&e5m2}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(every_code_widens_exactly), BOTH(every_border_rounds_to_nearest_even),
        BOTH(all_over_f32), BOTH(every_code_comes_back), BOTH(every_pair_of_codes),
        BOTH(every_pair_with_a_third), BOTH(every_halfway_point),
        BOTH(any_length_place_and_alignment), cmocka_unit_test(what_the_formats_say),
    };
    return cmocka_run_group_tests_name("small", tests, NULL, NULL);
}
