/* See model.h. Written to be read, not to be fast. */
#include "model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct format {
    int      fraction, bias;
    unsigned beyond, nan;
    size_t   size;
};

static const struct format formats[] = {
    [TUTTI_F16] = {10, 15, 0x7c00, 0x7e00, 2},  [TUTTI_BF16] = {7, 127, 0x7f80, 0x7fc0, 2},
    [TUTTI_F8E4M3] = {3, 7, 0x7f, 0x7f, 1},     [TUTTI_F8E5M2] = {2, 15, 0x7c, 0x7e, 1},
};

int model_is_float(tutti_type type)
{
    return (type >= TUTTI_F16 && type <= TUTTI_F64) || type == TUTTI_F8E4M3 || type == TUTTI_F8E5M2;
}

int model_is_complex(tutti_type type) { return type == TUTTI_C64 || type == TUTTI_C128; }

size_t model_size(tutti_type type)
{
    static const size_t sizes[] = {1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8, 1, 8, 16, 1, 1};
    return sizes[type];
}

uint64_t model_get(const uint8_t *from, size_t size)
{
    uint64_t value = 0;
    for (size_t i = 0; i < size; i++)
        value |= (uint64_t)from[i] << 8 * i;
    return value;
}

void model_put(uint8_t *to, uint64_t bits, size_t size)
{
    for (size_t i = 0; i < size; i++)
        to[i] = (uint8_t)(bits >> 8 * i);
}

/* ---- floats ---- */

unsigned model_beyond(tutti_type type) { return formats[type].beyond; }

double model_magnitude(unsigned code, tutti_type type)
{
    const struct format *f = &formats[type];
    unsigned             ones = 1u << f->fraction;
    unsigned             exponent = code / ones, fraction = code % ones;
    if (exponent == 0)
        return ldexp(fraction, 1 - f->bias - f->fraction);
    return ldexp(fraction + ones, (int)exponent - f->bias - f->fraction);
}

static double small_value(unsigned bits, tutti_type type)
{
    const struct format *f = &formats[type];
    unsigned             sign = 1u << (8 * f->size - 1), code = bits & (sign - 1);
    double               magnitude = model_magnitude(code, type);
    if (code >= f->beyond)
        magnitude = code == f->beyond && f->beyond != f->nan ? INFINITY : NAN;
    return bits & sign ? -magnitude : magnitude;
}

static unsigned small_bits(double value, tutti_type type)
{
    const struct format *f = &formats[type];
    unsigned sign = signbit(value) ? 1u << (8 * f->size - 1) : 0, low = 0, high = f->beyond;
    double               magnitude = fabs(value);
    if (isnan(value))
        return f->nan;
    if (magnitude >= model_magnitude(high, type))
        low = high;
    while (high - low > 1) {
        unsigned middle = (low + high) / 2;
        if (model_magnitude(middle, type) <= magnitude)
            low = middle;
        else
            high = middle;
    }
    if (low != high) {
        double half = (model_magnitude(low, type) + model_magnitude(high, type)) / 2;
        if (magnitude > half || (magnitude == half && low % 2))
            low = high;
    }
    return low == f->nan ? f->nan : low | sign;
}

double model_value(uint64_t bits, tutti_type type)
{
    uint32_t bits32 = (uint32_t)bits;
    float    f32;
    double   f64;
    memcpy(&f32, &bits32, 4);
    memcpy(&f64, &bits, 8);
    if (type == TUTTI_F32 || type == TUTTI_C64)
        return (double)f32;
    return type == TUTTI_F64 || type == TUTTI_C128 ? f64 : small_value((unsigned)bits, type);
}

uint64_t model_bits(double value, tutti_type type)
{
    float    f32 = (float)value;
    uint32_t bits32;
    uint64_t bits;
    memcpy(&bits32, &f32, 4);
    memcpy(&bits, &value, 8);
    if (type == TUTTI_F32 || type == TUTTI_C64)
        return isnan(value) ? 0x7fc00000 : bits32;
    if (type == TUTTI_F64 || type == TUTTI_C128)
        return isnan(value) ? 0x7ff8000000000000 : bits;
    return small_bits(value, type);
}

/* A sum, product or quotient of two f32, rounded to f64 and then to f32, is the one rounded to f32:
 * 53 >= 2 x 24 + 2 bits. */
double model_accumulated(double value, tutti_type type)
{
    return type == TUTTI_F64 || type == TUTTI_C128 ? value : (double)(float)value;
}

/* What stands in a volatile is rounded and was never part of a fused operation. */
static double times(double a, double b, tutti_type type)
{
    volatile double product = a * b;
    product = model_accumulated(product, type);
    return product;
}

static double plus(double a, double b, tutti_type type)
{
    volatile double sum = a + b;
    sum = model_accumulated(sum, type);
    return sum;
}

static double extreme(double a, double b, tutti_op op)
{
    int below = a < b || (a == b && signbit(a) && !signbit(b));
    if (isnan(a) || isnan(b))
        return NAN;
    return below == (op == TUTTI_MIN) ? a : b;
}

static uint64_t fold_float(const uint8_t *const values[], const uint8_t *const factor[], int n,
                           int divisor, tutti_type type, tutti_op op)
{
    double acc = 0;
    for (int r = 0; r < n; r++) {
        double next = model_value(model_get(values[r], model_size(type)), type);
        if (factor)
            next = times(next, model_value(model_get(factor[r], model_size(type)), type), type);
        if (r == 0)
            acc = next;
        else if (op == TUTTI_PROD)
            acc = times(acc, next, type);
        else if (op == TUTTI_MIN || op == TUTTI_MAX)
            acc = extreme(acc, next, op);
        else
            acc = plus(acc, next, type);
    }
    return model_bits(op == TUTTI_AVG ? model_accumulated(acc / divisor, type) : acc, type);
}

/* ---- complex ---- */

struct pair {
    double re, im;
};

static struct pair pair_get(const uint8_t *from, tutti_type type)
{
    size_t part = model_size(type) / 2;
    return (struct pair){ model_value(model_get(from, part), type),
                          model_value(model_get(from + part, part), type) };
}

static struct pair pair_times(struct pair a, struct pair b, tutti_type type)
{
    double ac = times(a.re, b.re, type), bd = times(a.im, b.im, type);
    double ad = times(a.re, b.im, type), bc = times(a.im, b.re, type);
    return (struct pair){plus(ac, -bd, type), plus(ad, bc, type)};
}

static void fold_complex(uint8_t *out, const uint8_t *const values[], const uint8_t *const factor[],
                         int n, int divisor, tutti_type type, tutti_op op)
{
    size_t      part = model_size(type) / 2;
    struct pair acc = {0, 0};
    for (int r = 0; r < n; r++) {
        struct pair next = pair_get(values[r], type);
        if (factor)
            next = pair_times(next, pair_get(factor[r], type), type);
        if (r == 0)
            acc = next;
        else if (op == TUTTI_PROD)
            acc = pair_times(acc, next, type);
        else
            acc = (struct pair){plus(acc.re, next.re, type), plus(acc.im, next.im, type)};
    }
    if (op == TUTTI_AVG)
        acc = (struct pair){ model_accumulated(acc.re / divisor, type),
                             model_accumulated(acc.im / divisor, type) };
    model_put(out, model_bits(acc.re, type), part);
    model_put(out + part, model_bits(acc.im, type), part);
}

/* ---- all ---- */

void model_fold(uint8_t *out, const uint8_t *const values[], const uint8_t *const factor[], int n,
                int divisor, tutti_type type, tutti_op op)
{
    size_t   size = model_size(type);
    uint64_t sum = 0;
    if (model_is_complex(type)) {
        fold_complex(out, values, factor, n, divisor, type, op);
    } else if (model_is_float(type)) {
        model_put(out, fold_float(values, factor, n, divisor, type, op), size);
    } else if (op == TUTTI_PREMUL_SUM) {
        for (int r = 0; r < n; r++)
            sum += model_get(values[r], size) * model_get(factor[r], size);
        model_put(out, sum, size);
    } else {
        abort();
    }
}

/* ---- values ---- */

uint64_t model_random(void)
{
    static uint64_t seed = 0x9e3779b97f4a7c15;
    seed ^= seed << 13;
    seed ^= seed >> 7;
    return seed ^= seed << 17;
}

static uint64_t pick(const uint64_t from[], size_t length) { return from[model_random() % length]; }

#define PICK(from) pick(from, sizeof(from) / sizeof(from)[0])

/* Infinities and NaNs are rare enough that most folds of a few contributions stay numbers. */
uint64_t model_any(tutti_type type)
{
    static const uint64_t f32s[] = {
        0, 0x80000000, 1, 0x80000001, 0x7fffff, 0x800000, 0x80800000, 0x3f800000, 0xbf800000,
        0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0xff800001, 0x7fc01234
    };
    static const uint64_t f64s[] = {
        0, UINT64_C(1) << 63, 1, 0x8000000000000001, 0x000fffffffffffff, 0x0010000000000000,
        0x3ff0000000000000, 0xbff0000000000000, 0x7fefffffffffffff, 0xffefffffffffffff,
        0x7ff0000000000000, 0xfff0000000000000, 0x7ff8000000000000, 0xfff0000000000001, INT64_MAX
    };
    static const uint64_t f16s[] = {
        0, 0x8000, 1, 0x8001, 0x3ff, 0x400, 0x8400, 0x3c00, 0xbc00, 0x7bff,
        0xfbff, 0x7c00, 0xfc00, 0x7d55
    };
    static const uint64_t bf16s[] = {
        0, 0x8000, 1, 0x8001, 0x7f, 0x80, 0x8080, 0x3f80, 0xbf80, 0x7f7f,
        0xff7f, 0x7f80, 0xff80, 0x7f81
    };
    static const uint64_t ints[] = {
        0, 1, 2, 0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff,
        INT64_MAX, UINT64_C(1) << 63, UINT64_MAX
    };
    unsigned              kind = (unsigned)(model_random() >> 40) % 16;
    double near_one = ((double)(model_random() >> 11) / 0x1p52 - 1) * (kind % 4 ? 2 : 1e-4);
    if (!model_is_float(type) && !model_is_complex(type))
        return kind < 6 ? PICK(ints) : model_random();
    if (kind >= 3)
        return model_bits(near_one, type);
    if (kind == 2 || type >= TUTTI_F8E4M3)
        return model_random();
    switch (type) {
    case TUTTI_F16: return PICK(f16s);
    case TUTTI_BF16: return PICK(bf16s);
    case TUTTI_F64: case TUTTI_C128: return PICK(f64s);
    default: return PICK(f32s);
    }
}
