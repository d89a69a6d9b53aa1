/* Halves against a reference that knows nothing of bit patterns of f32: a half is sign x integer x
 * power of two, and rounding is done on the value counted in units of its last place, in double,
 * where every step but that one is exact. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "fold/half.h"

struct format {
    int      exponent_bits, fraction_bits;
    uint16_t nan;
    float (*widen)(uint16_t);
    uint16_t (*narrow)(float);
};

static const struct format f16 = {5, 10, 0x7e00, half_f32_from_f16, half_f16_from_f32};
static const struct format bf16 = {8, 7, 0x7fc0, half_f32_from_bf16, half_bf16_from_f32};

/* Whole, ties to even, for 0 <= value < 2^51: at 2^52 the last bit of a double weighs 1. */
static double nearest(double value) { return value + 0x1p52 - 0x1p52; }

static int exponent_of(double value)
{
    int exponent;
    frexp(value, &exponent);
    return exponent - 1;
}

static double slow_value(const struct format *f, uint16_t half)
{
    int    bias = (1 << (f->exponent_bits - 1)) - 1;
    int    top = (1 << f->exponent_bits) - 1;
    int    exponent = (half & 0x7fff) >> f->fraction_bits;
    int    fraction = half & ((1 << f->fraction_bits) - 1);
    double magnitude;
    if (exponent == top)
        magnitude = fraction ? NAN : INFINITY;
    else if (exponent == 0)
        magnitude = ldexp(fraction, 1 - bias - f->fraction_bits);
    else
        magnitude = ldexp(fraction + (1 << f->fraction_bits), exponent - bias - f->fraction_bits);
    return half & 0x8000 ? -magnitude : magnitude;
}

static uint16_t slow_half(const struct format *f, double value)
{
    int      bias = (1 << (f->exponent_bits - 1)) - 1;
    int      infinity = ((1 << f->exponent_bits) - 1) << f->fraction_bits;
    int      exponent = 1 - bias;
    uint16_t sign = signbit(value) ? 0x8000 : 0;
    if (isnan(value))
        return f->nan;
    if (isinf(value))
        return (uint16_t)(sign | infinity);
    if (value != 0 && exponent_of(value) > exponent)
        exponent = exponent_of(value);
    /* A fraction that rounds up to the next power of two carries into the exponent by itself; so
     * does the last one, to infinity. */
    int units = (int)nearest(ldexp(fabs(value), f->fraction_bits - exponent));
    int bits = units + ((exponent + bias - 1) << f->fraction_bits);
    return (uint16_t)(sign | (bits < infinity ? bits : infinity));
}

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

static void check_narrow(const struct format *f, uint32_t bits)
{
    float    value = from_bits(bits);
    uint16_t got = f->narrow(value);
    uint16_t want = slow_half(f, (double)value);
    if (got != want)
        fail_msg("f32 0x%08x (%a) became 0x%04x, not 0x%04x", (unsigned)bits, (double)value, got,
                 want);
}

static void every_half_widens_exactly(void **state)
{
    const struct format *f = *state;
    for (unsigned half = 0; half <= 0xffff; half++) {
        float  got = f->widen((uint16_t)half);
        double want = slow_value(f, (uint16_t)half);
        if (isnan(want))
            assert_int_equal(bits_of(got), 0x7fc00000);
        else
            assert_int_equal(bits_of(got), bits_of((float)want));
    }
}

static void every_half_comes_back(void **state)
{
    const struct format *f = *state;
    for (unsigned half = 0; half <= 0xffff; half++) {
        uint16_t got = f->narrow(f->widen((uint16_t)half));
        if (isnan(slow_value(f, (uint16_t)half)))
            assert_int_equal(got, f->nan);
        else
            assert_int_equal(got, half);
    }
}

/* Around each half and around each point halfway to the next one, on both sides, in steps of f32.
 * The largest half is followed by the value that would come next, so the border of overflow is
 * among them. */
static void every_border_rounds_to_nearest_even(void **state)
{
    const struct format *f = *state;
    unsigned             infinity = ((1u << f->exponent_bits) - 1) << f->fraction_bits;
    for (unsigned half = 0; half < infinity; half++) {
        double here = slow_value(f, (uint16_t)half);
        double next = half + 1 < infinity ? slow_value(f, (uint16_t)(half + 1))
                                          : ldexp(1, 1 << (f->exponent_bits - 1));
        for (uint32_t sign = 0; sign <= 1; sign++)
            for (uint32_t step = 0; step <= 4; step++) {
                uint32_t middle = bits_of((float)((here + next) / 2));
                uint32_t start = bits_of((float)here);
                check_narrow(f, sign << 31 | (middle + step - 2));
                check_narrow(f, sign << 31 | (start >= 2 ? start + step - 2 : start + step));
            }
    }
}

static void all_over_f32(void **state)
{
    const struct format *f = *state;
    for (uint64_t bits = 0; bits <= UINT32_MAX; bits += 1499)
        check_narrow(f, (uint32_t)bits);
    check_narrow(f, 0x7f7fffff);
    check_narrow(f, 0x7f800000);
    check_narrow(f, 0xff800000);
}

static void nan_becomes_the_one_nan(void **state)
{
    static const uint32_t nans[] = {
        0x7f800001, 0x7fbfffff, 0x7fc00000, 0x7fffffff, 0xff800001,
        0xffc00000, 0xffffffff, 0x7f802000
    };
    const struct format  *f = *state;
    for (size_t i = 0; i < sizeof nans / sizeof nans[0]; i++)
        assert_int_equal(f->narrow(from_bits(nans[i])), f->nan);
}

#define ON(test, format) {#test " " #format, test, NULL, NULL, (void *)(uintptr_t)&format}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON(every_half_widens_exactly, f16),           ON(every_half_widens_exactly, bf16),
        ON(every_half_comes_back, f16),               ON(every_half_comes_back, bf16),
        ON(every_border_rounds_to_nearest_even, f16), ON(every_border_rounds_to_nearest_even, bf16),
        ON(all_over_f32, f16),                        ON(all_over_f32, bf16),
        ON(nan_becomes_the_one_nan, f16),             ON(nan_becomes_the_one_nan, bf16),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
