/* Every instruction set this machine has, held bit for bit against a serial fold written
 * differently: one element at a time, integers as 64-bit numbers cut to size, floats in a wider
 * type that is rounded after each step, halves as whole numbers of units in the last place. Complex
 * numbers, 8-bit floats and factors have tests of their own; here they are named and refused. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fold/fold.h"

enum { MOST = 1000, MOST_RANKS = 33, GUARD = 96, ROOM = GUARD + MOST * 8 + 8 + GUARD };
enum { TYPES = TUTTI_BOOL + 1, ALL_TYPES = TUTTI_F8E5M2 + 1, OPS = TUTTI_LXOR + 1 };

static const char *const isas[] = {"plain", "avx2", "avx512", "neon"};
static const size_t      counts[] = {
    0, 1, 3, 7, 8, 15, 16, 17, 31, 33, 63, 64, 65, 127, 129, 257, 1000
};
static const int         ranks[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, MOST_RANKS};

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

/* ---- the reference ---- */

static int is_float(tutti_type type) { return type >= TUTTI_F16 && type <= TUTTI_F64; }

static int is_signed(tutti_type type)
{
    return type == TUTTI_I8 || type == TUTTI_I16 || type == TUTTI_I32 || type == TUTTI_I64;
}

static size_t size_of(tutti_type type)
{
    static const size_t sizes[] = {1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8, 1};
    return sizes[type];
}

static uint64_t raw(const uint8_t *from, size_t size)
{
    uint64_t value = 0;
    for (size_t i = 0; i < size; i++)
        value |= (uint64_t)from[i] << 8 * i;
    return value;
}

static void put_raw(uint8_t *to, uint64_t value, size_t size)
{
    for (size_t i = 0; i < size; i++)
        to[i] = (uint8_t)(value >> 8 * i);
}

static uint64_t extended(uint64_t value, tutti_type type)
{
    int unused = 64 - 8 * (int)size_of(type);
    return is_signed(type) && value >> (63 - unused) & 1 ? value | ~(UINT64_MAX >> unused) : value;
}

static int less(uint64_t a, uint64_t b, tutti_type type)
{
    uint64_t flip = is_signed(type) ? UINT64_C(1) << 63 : 0;
    return (a ^ flip) < (b ^ flip);
}

static uint64_t step_integer(uint64_t a, uint64_t b, tutti_type type, tutti_op op)
{
    switch (op) {
    case TUTTI_SUM: case TUTTI_AVG: return a + b;
    case TUTTI_PROD: return a * b;
    case TUTTI_MIN: return less(b, a, type) ? b : a;
    case TUTTI_MAX: return less(a, b, type) ? b : a;
    case TUTTI_BAND: return a & b;
    case TUTTI_BOR: return a | b;
    case TUTTI_BXOR: return a ^ b;
    case TUTTI_LAND: return a && b;
    case TUTTI_LOR: return a || b;
    case TUTTI_LXOR: return !a != !b;
    default: abort();
    }
}

static uint64_t fold_integer(const uint64_t values[], int n, int divisor, tutti_type type,
                             tutti_op op)
{
    int logical = type == TUTTI_BOOL || op == TUTTI_LAND || op == TUTTI_LOR || op == TUTTI_LXOR;
    uint64_t acc = logical ? values[0] != 0 : extended(values[0], type);
    for (int r = 1; r < n; r++) {
        uint64_t next = logical ? values[r] != 0 : extended(values[r], type);
        acc = step_integer(acc, next, type, op);
        if (type == TUTTI_BOOL)
            acc = acc != 0;
    }
    if (op == TUTTI_AVG) {
        int      negative = is_signed(type) && acc >> 63;
        uint64_t quotient = (negative ? 0 - acc : acc) / (unsigned)divisor;
        acc = negative ? 0 - quotient : quotient;
    }
    return acc;
}

/* Whole, ties to even, for 0 <= value < 2^51: at 2^52 the last bit of a double weighs 1. */
static double nearest(double value) { return value + 0x1p52 - 0x1p52; }

static int exponent_of(double value)
{
    int exponent;
    frexp(value, &exponent);
    return exponent - 1;
}

static double half_value(uint64_t half, int exponent_bits, int fraction_bits)
{
    int    bias = (1 << (exponent_bits - 1)) - 1;
    int    exponent = (int)(half & 0x7fff) >> fraction_bits;
    int    fraction = (int)half & ((1 << fraction_bits) - 1);
    double magnitude = exponent == 0
        ? ldexp(fraction, 1 - bias - fraction_bits)
        : ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits);
    if (exponent == (1 << exponent_bits) - 1)
        magnitude = fraction ? NAN : INFINITY;
    return half & 0x8000 ? -magnitude : magnitude;
}

static uint64_t half_nearest(double value, int exponent_bits, int fraction_bits)
{
    int      bias = (1 << (exponent_bits - 1)) - 1;
    uint64_t infinity = ((UINT64_C(1) << exponent_bits) - 1) << fraction_bits;
    int exponent = value != 0 && isfinite(value) && exponent_of(value) > 1 - bias
        ? exponent_of(value)
        : 1 - bias;
    uint64_t bits = infinity;
    if (isfinite(value) && exponent <= bias)
        bits = (uint64_t)nearest(ldexp(fabs(value), fraction_bits - exponent))
            + ((uint64_t)(exponent + bias - 1) << fraction_bits);
    return bits | (signbit(value) ? 0x8000 : 0);
}

static double number(uint64_t bits, tutti_type type)
{
    uint32_t bits32 = (uint32_t)bits;
    float    f32;
    double   f64;
    switch (type) {
    case TUTTI_F16: return half_value(bits, 5, 10);
    case TUTTI_BF16: return half_value(bits, 8, 7);
    case TUTTI_F32: memcpy(&f32, &bits32, 4); return (double)f32;
    default: memcpy(&f64, &bits, 8); return f64;
    }
}

static uint64_t bits_of(double value, tutti_type type)
{
    static const uint64_t quiet[] = {0x7e00, 0x7fc0, 0x7fc00000, 0x7ff8000000000000};
    float                 f32 = (float)value;
    uint32_t              bits32;
    uint64_t              bits;
    memcpy(&bits32, &f32, 4);
    memcpy(&bits, &value, 8);
    if (isnan(value))
        return quiet[type - TUTTI_F16];
    switch (type) {
    case TUTTI_F16: return half_nearest(value, 5, 10);
    case TUTTI_BF16: return half_nearest(value, 8, 7);
    case TUTTI_F32: return bits32;
    default: return bits;
    }
}

static double step_float(double a, double b, tutti_op op)
{
    if (isnan(a) || isnan(b))
        return NAN;
    int below = a < b || (a == b && signbit(a) && !signbit(b));
    switch (op) {
    case TUTTI_SUM: case TUTTI_AVG: return a + b;
    case TUTTI_PROD: return a * b;
    case TUTTI_MIN: return below ? a : b;
    case TUTTI_MAX: return below ? b : a;
    default: abort();
    }
}

/* The sum, product or quotient of two f32 rounded to f64 and then to f32 is the one rounded to f32:
 * 53 >= 2 x 24 + 2 bits. */
static uint64_t fold_float(const uint64_t values[], int n, int divisor, tutti_type type,
                           tutti_op op)
{
    double acc = number(values[0], type);
    for (int r = 1; r < n; r++) {
        acc = step_float(acc, number(values[r], type), op);
        if (type != TUTTI_F64)
            acc = (double)(float)acc;
    }
    if (op == TUTTI_AVG)
        acc /= divisor;
    if (type != TUTTI_F64)
        acc = (double)(float)acc;
    return bits_of(acc, type);
}

static int allowed(tutti_type type, tutti_op op)
{
    if (type == TUTTI_C64 || type == TUTTI_C128)
        return op == TUTTI_SUM || op == TUTTI_PROD || op == TUTTI_AVG;
    if (is_float(type) || type > TUTTI_C128)
        return op <= TUTTI_AVG;
    return type < TUTTI_BOOL || op != TUTTI_AVG;
}

/* ---- values ---- */

static uint64_t seed = 0x9e3779b97f4a7c15;

static uint64_t any(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    return seed ^= seed << 17;
}

static uint64_t pick(const uint64_t from[], size_t length) { return from[any() % length]; }

/* Half of them are the values that go wrong first; the rest are any bits, or near 1 so that sums
 * round and do not overflow. */
static uint64_t value(tutti_type type)
{
    static const uint64_t ints[] = {
        0, 1, 2, 0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff,
        INT64_MAX, UINT64_C(1) << 63, UINT64_MAX, UINT64_MAX - 1
    };
    static const uint64_t f16s[] = {
        0, 0x8000, 1, 0x8001, 0x3ff, 0x400, 0x8400, 0x3c00, 0xbc00, 0x7bff, 0xfbff, 0x7c00, 0xfc00,
        0x7e00, 0xfe00, 0x7c01, 0xfc01, 0x7fff, 0xffff, 0x7d55
    };
    static const uint64_t bf16s[] = {
        0, 0x8000, 1, 0x8001, 0x7f, 0x80, 0x8080, 0x3f80, 0xbf80, 0x7f7f, 0xff7f, 0x7f80, 0xff80,
        0x7fc0, 0xffc0, 0x7f81, 0xff81, 0x7fff, 0xffff, 0x7fd5
    };
    static const uint64_t f32s[] = {
        0, 0x80000000, 1, 0x80000001, 0x7fffff, 0x800000, 0x3f800000, 0xbf800000, 0x7f7fffff,
        0xff7fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc00000, 0x7f800001, 0xff800001,
        0x7fffffff, 0xffffffff, 0x7fc01234
    };
    static const uint64_t f64s[] = {
        0, UINT64_C(1) << 63, 1, 0x8000000000000001, 0x000fffffffffffff, 0x0010000000000000,
        0x3ff0000000000000, 0xbff0000000000000, 0x7fefffffffffffff, 0xffefffffffffffff,
        0x7ff0000000000000, 0xfff0000000000000, 0x7ff8000000000000, 0xfff8000000000000,
        0x7ff0000000000001, 0xfff0000000000001, UINT64_MAX, INT64_MAX
    };
    static const uint64_t bools[] = {0, 0, 0, 1, 2, 0x80, 0xff};
    unsigned              kind = (unsigned)(any() >> 40) % 8;
    if (kind == 0 || (kind <= 5 && is_float(type))) {
        if (!is_float(type) || kind == 0)
            return any();
        return bits_of(((double)(any() >> 11) / 0x1p52 - 1) * (kind & 1 ? 1 : 1e-4), type);
    }
    switch (type) {
    case TUTTI_F16: return pick(f16s, LENGTH(f16s));
    case TUTTI_BF16: return pick(bf16s, LENGTH(bf16s));
    case TUTTI_F32: return pick(f32s, LENGTH(f32s));
    case TUTTI_F64: return pick(f64s, LENGTH(f64s));
    case TUTTI_BOOL: return pick(bools, LENGTH(bools));
    default: return kind & 1 ? any() : pick(ints, LENGTH(ints));
    }
}

/* ---- the comparison ---- */

static uint8_t source[MOST_RANKS][MOST * 8];
static uint8_t expected[MOST * 8];

static void prepare(tutti_type type, tutti_op op, int n, int divisor)
{
    size_t size = size_of(type);
    for (size_t i = 0; i < MOST; i++) {
        uint64_t values[MOST_RANKS] = {0};
        for (int r = 0; r < n; r++) {
            put_raw(source[r] + i * size, value(type), size);
            values[r] = raw(source[r] + i * size, size);
        }
        uint64_t result = is_float(type) ? fold_float(values, n, divisor, type, op)
                                         : fold_integer(values, n, divisor, type, op);
        put_raw(expected + i * size, result, size);
    }
}

static void complain(const char *isa, tutti_type type, tutti_op op, int n, size_t count,
                     const uint8_t *got)
{
    size_t size = size_of(type), i = 0;
    while (memcmp(got + i * size, expected + i * size, size) == 0)
        i++;
    for (int r = 0; r < n; r++)
        print_error("  [%d] 0x%llx\n", r, (unsigned long long)raw(source[r] + i * size, size));
    fail_msg("%s %s %s, %d ranks, element %zu of %zu: 0x%llx, not 0x%llx", isa,
             fold_type_name(type), fold_op_name(op), n, i, count,
             (unsigned long long)raw(got + i * size, size),
             (unsigned long long)raw(expected + i * size, size));
}

/* place: which contribution dst is; n: none of them. shift: how far every pointer is off its
 * alignment, each a different one. */
static void check(fold_fn *fn, const char *isa, tutti_type type, tutti_op op, int n, size_t count,
                  int divisor, int place, size_t shift)
{
    static _Alignas(64) uint8_t room[MOST_RANKS + 1][ROOM];
    size_t                      bytes = count * size_of(type);
    const void                 *src[MOST_RANKS];
    uint8_t                    *dst = room[n] + GUARD + shift;
    for (int r = 0; r < n; r++) {
        uint8_t *at = room[r] + GUARD + (shift ? (shift + 2 * (size_t)r) % 8 : 0);
        memset(room[r], 0xa5, bytes + 2 * GUARD);
        memcpy(at, source[r], bytes);
        src[r] = at;
        if (r == place)
            dst = at;
    }
    memset(room[n], 0xa5, bytes + 2 * GUARD);
    fn(dst, src, n, count, divisor);
    if (memcmp(dst, expected, bytes) != 0)
        complain(isa, type, op, n, count, dst);
    uint8_t *first = room[place], *last = first + bytes + 2 * GUARD;
    for (const uint8_t *p = first; p < last; p++)
        if ((p < dst || p >= dst + bytes) && *p != 0xa5)
            fail_msg("%s %s %s, %d ranks, %zu elements: wrote %td bytes from dst", isa,
                     fold_type_name(type), fold_op_name(op), n, count, p - dst);
    for (int r = 0; r < n; r++)
        if (r != place && memcmp(src[r], source[r], bytes) != 0)
            fail_msg("%s %s %s: changed contribution %d", isa, fold_type_name(type),
                     fold_op_name(op), r);
}

static void check_pair(const char *isa, tutti_type type, tutti_op op, int n, int divisor)
{
    fold_fn *fn = fold_find_isa(isa, type, op);
    assert_non_null(fn);
    for (size_t c = 0; c < LENGTH(counts); c++) {
        check(fn, isa, type, op, n, counts[c], divisor, n, 0);
        check(fn, isa, type, op, n, counts[c], divisor, n, 1 + c % 7);
        check(fn, isa, type, op, n, counts[c], divisor, 0, 1 + c % 5);
        check(fn, isa, type, op, n, counts[c], divisor, n / 2, 0);
        check(fn, isa, type, op, n, counts[c], divisor, n - 1, 1 + c % 3);
    }
}

static void every_pair_folds_like_the_reference(void **state)
{
    int type_number = *(const int *)*state;
    for (int o = 0; o < OPS; o++) {
        tutti_type type = (tutti_type)type_number;
        tutti_op   op = (tutti_op)o;
        for (size_t k = 0; allowed(type, op) && k < LENGTH(ranks); k++)
            for (int round = 0; round < (op == TUTTI_AVG ? 3 : 1); round++) {
                int divisor = round == 0 ? ranks[k] : round == 1 ? 7 : 1;
                prepare(type, op, ranks[k], divisor);
                for (size_t i = 0; i < LENGTH(isas); i++)
                    if (fold_find_isa(isas[i], TUTTI_F32, TUTTI_SUM))
                        check_pair(isas[i], type, op, ranks[k], divisor);
            }
    }
}

/* With sums outside double's whole numbers, and 64-bit sums that wrap. */
static void integer_average_is_exact_for_any_number_of_ranks(void **state)
{
    enum { MANY = (1 << 20) + 1 };
    const int32_t low = INT32_MIN, odd = INT32_MAX;
    const int64_t deep = INT64_MIN + 5;
    const void  **src = malloc(MANY * sizeof *src);
    int32_t       got = 0;
    int64_t       wide = 0;
    (void)state;
    assert_non_null(src);
    for (size_t i = 0; i < LENGTH(isas); i++) {
        fold_fn *fn = fold_find_isa(isas[i], TUTTI_I32, TUTTI_AVG);
        if (!fn)
            continue;
        for (int r = 0; r < MANY; r++)
            src[r] = &low;
        for (int n = MANY - 1; n <= MANY; n++) {
            fn(&got, src, n, 1, n);
            assert_int_equal(got, INT32_MIN);
        }
        src[0] = &odd;
        fn(&got, src, MANY, 1, MANY);
        assert_int_equal(got, (odd + (int64_t)low * (MANY - 1)) / MANY);
        src[0] = src[1] = src[2] = &deep;
        fold_find_isa(isas[i], TUTTI_I64, TUTTI_AVG)(&wide, src, 3, 1, 3);
        assert_int_equal(wide, (INT64_MIN + 15) / 3);
    }
    free(src);
}

/* The contributions end where a page begins that must not be touched, or begin where one ends. */
static void nothing_beside_the_elements_is_touched(void **state)
{
    size_t   page = (size_t)sysconf(_SC_PAGESIZE);
    uint8_t *map = mmap(NULL, 9 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    (void)state;
    assert_true(map != MAP_FAILED);
    for (size_t k = 1; k < 9; k += 2)
        assert_int_equal(mprotect(map + k * page, page, PROT_READ | PROT_WRITE), 0);
    for (size_t i = 0; i < LENGTH(isas); i++)
        for (int t = 0; t < ALL_TYPES; t++)
            for (int o = 0; o <= OPS; o++) {
                fold_fn        *fn = fold_find_isa(isas[i], (tutti_type)t, (tutti_op)o);
                fold_scaled_fn *scaled = o == OPS ? fold_find_scaled_isa(isas[i], (tutti_type)t)
                                                  : NULL;
                size_t          size = fold_type_size((tutti_type)t);
                for (size_t count = 1; (fn || scaled) && count <= 300 && count * size <= page;
                     count += count < 70 ? 1 : 23)
                    for (int n = 2; n <= 3; n++)
                        for (int end = 0; end <= 1; end++) {
                            uint8_t *at[4];
                            for (size_t k = 0; k < 4; k++)
                                at[k] = map + (2 * k + 1) * page + (end ? page - count * size : 0);
                            const void *src[] = {at[0], at[1], at[2]};
                            const void *last[3];
                            for (size_t k = 0; k < 3; k++)
                                last[k] = map + (2 * k + 2) * page - size;
                            if (fn)
                                fn(at[3], src, n, count, n);
                            else
                                scaled(at[3], src, last, n, count);
                        }
            }
    munmap(map, 9 * page);
}

static void a_sum_wraps_in_order_and_a_nan_is_the_one_nan(void **state)
{
    (void)state;
    const float a = 1e8f, b = -1e8f, c = 1.0f;
    const void *abc[] = {&a, &b, &c}, *acb[] = {&a, &c, &b};
    float       got;
    fold_fn    *sum = fold_find(TUTTI_F32, TUTTI_SUM, NULL);
    sum(&got, abc, 3, 1, 3);
    assert_true(got == 1.0f);
    sum(&got, acb, 3, 1, 3);
    assert_true(got == 0.0f);
    const uint32_t nan = 0xff801234;
    const void    *one[] = {&nan};
    uint32_t       bits;
    sum(&bits, one, 1, 1, 1);
    assert_int_equal(bits, 0x7fc00000);
    fold_find(TUTTI_F32, TUTTI_MAX, NULL)(&bits, one, 1, 1, 1);
    assert_int_equal(bits, 0x7fc00000);
}

/* 1 + 2^-11 thrice: rounding f16 after each step would stay at 1; f32 sees 1 + 3 x 2^-11, which
 * rounds up. */
static void halves_round_once(void **state)
{
    (void)state;
    const uint16_t one = 0x3c00, tiny = 0x1000;
    const void    *src[] = {&one, &tiny, &tiny, &tiny};
    for (size_t i = 0; i < LENGTH(isas); i++) {
        fold_fn *fn = fold_find_isa(isas[i], TUTTI_F16, TUTTI_SUM);
        uint16_t got = 0;
        if (!fn)
            continue;
        fn(&got, src, 4, 1, 4);
        assert_int_equal(got, 0x3c02);
    }
}

static void refused_pairs_give_a_reason(void **state)
{
    (void)state;
    for (int t = -1; t <= TUTTI_F8E5M2 + 2; t++)
        for (int o = -1; o <= TUTTI_PREMUL_SUM + 2; o++) {
            int there = t >= 0 && t < ALL_TYPES && o >= 0 && o < OPS
                && allowed((tutti_type)t, (tutti_op)o);
            const char *why = "untouched";
            fold_fn    *fn = fold_find((tutti_type)t, (tutti_op)o, &why);
            assert_ptr_equal(fn, fold_find((tutti_type)t, (tutti_op)o, NULL));
            assert_int_equal(fn != NULL, there);
            if (there) {
                assert_null(why);
            } else {
                assert_non_null(why);
                assert_non_null(strchr(why, ';'));
                assert_null(fold_find_isa("plain", (tutti_type)t, (tutti_op)o));
            }
        }
    const char *why;
    assert_null(fold_find(TUTTI_F32, TUTTI_BAND, &why));
    assert_non_null(strstr(why, "f32 has TUTTI_SUM"));
    assert_non_null(strstr(why, "PREMUL_SUM"));
    assert_null(fold_find(TUTTI_F8E5M2, TUTTI_LOR, &why));
    assert_non_null(strstr(why, "f8e5m2 has TUTTI_SUM"));
    assert_null(fold_find(TUTTI_C64, TUTTI_MIN, &why));
    assert_non_null(strstr(why, "no order"));
    assert_non_null(strstr(why, "c64 has TUTTI_SUM, PROD, AVG, PREMUL_SUM"));
    assert_null(fold_find(TUTTI_F32, TUTTI_OP_USER, &why));
    assert_string_equal(why, "this comm has no such operation; make it with tutti_op_create");
    assert_null(fold_find(TUTTI_F32, TUTTI_OP_MAX, &why));
    assert_string_equal(why, "this comm has no such operation; make it with tutti_op_create");
    assert_null(fold_find(TUTTI_BOOL, TUTTI_AVG, &why));
    assert_non_null(strstr(why, "no average"));
}

static void the_best_set_is_chosen_and_all_are_complete(void **state)
{
    (void)state;
    const char *best = "plain";
    for (size_t i = 0; i < LENGTH(isas); i++) {
        int there = fold_find_isa(isas[i], TUTTI_F32, TUTTI_SUM) != NULL;
        if (there)
            best = isas[i];
        print_message("%s: %s\n", isas[i], there ? "tested" : "not on this machine, skipped");
        for (int t = 0; t < ALL_TYPES; t++)
            for (int o = 0; o < OPS; o++)
                assert_int_equal(fold_find_isa(isas[i], (tutti_type)t, (tutti_op)o) != NULL,
                                 there && allowed((tutti_type)t, (tutti_op)o));
    }
    assert_string_equal(fold_isa(), best);
    assert_ptr_equal(fold_find(TUTTI_F32, TUTTI_SUM, NULL),
                     fold_find_isa(best, TUTTI_F32, TUTTI_SUM));
    assert_null(fold_find_isa("sse9", TUTTI_F32, TUTTI_SUM));
}

static void types_and_operations_have_names_and_sizes(void **state)
{
    (void)state;
    for (int t = 0; t < TYPES; t++)
        assert_int_equal(fold_type_size((tutti_type)t), size_of((tutti_type)t));
    assert_int_equal(fold_type_size(TUTTI_C64), 8);
    assert_int_equal(fold_type_size(TUTTI_C128), 16);
    assert_int_equal(fold_type_size(TUTTI_F8E4M3), 1);
    assert_int_equal(fold_type_size((tutti_type)99), 0);
    assert_int_equal(fold_type_size((tutti_type)-1), 0);
    assert_string_equal(fold_type_name(TUTTI_BF16), "bf16");
    assert_string_equal(fold_type_name(TUTTI_BOOL), "bool");
    assert_string_equal(fold_type_name((tutti_type)99), "?");
    assert_string_equal(fold_op_name(TUTTI_SUM), "sum");
    assert_string_equal(fold_op_name(TUTTI_LXOR), "lxor");
    assert_string_equal(fold_op_name((tutti_op)500), "?");
    assert_string_equal(fold_op_name((tutti_op)(TUTTI_OP_USER + 3)), "user");
}

/* Our own questions to the processor, beside the compiler's. */
static void instruction_sets(void **state)
{
    (void)state;
#if defined(__x86_64__)
    __builtin_cpu_init();
    int avx2 = !!__builtin_cpu_supports("avx2"),
        avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw")
            && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    assert_int_equal(fold_find_isa("avx2", TUTTI_F32, TUTTI_SUM) != NULL, avx2);
    assert_int_equal(fold_find_isa("avx512", TUTTI_F32, TUTTI_SUM) != NULL, avx512);
#endif
    assert_non_null(fold_find_isa("plain", TUTTI_F32, TUTTI_SUM));
    assert_null(fold_find_isa("nothing", TUTTI_F32, TUTTI_SUM));
}

int main(void)
{
    static int        type_numbers[TYPES];
    static char       names[TYPES][64];
    struct CMUnitTest folds[TYPES] = {{0}};
    for (int t = 0; t < TYPES; t++) {
        type_numbers[t] = t;
        snprintf(names[t], sizeof names[t], "every_pair_folds_like_the_reference %s",
                 fold_type_name((tutti_type)t));
        folds[t] = (struct CMUnitTest){
            names[t], every_pair_folds_like_the_reference, NULL, NULL, &type_numbers[t]
        };
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(instruction_sets),
        cmocka_unit_test(the_best_set_is_chosen_and_all_are_complete),
        cmocka_unit_test(types_and_operations_have_names_and_sizes),
        cmocka_unit_test(refused_pairs_give_a_reason),
        cmocka_unit_test(a_sum_wraps_in_order_and_a_nan_is_the_one_nan),
        cmocka_unit_test(halves_round_once),
        cmocka_unit_test(integer_average_is_exact_for_any_number_of_ranks),
        cmocka_unit_test(nothing_beside_the_elements_is_touched),
    };
    int failed = cmocka_run_group_tests_name("fold", tests, NULL, NULL);
    return failed + cmocka_run_group_tests_name("fold by type", folds, NULL, NULL);
}
