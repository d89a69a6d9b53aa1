/* The serial fold, one element at a time, by the contract in tutti.h only. Integers are 64-bit
 * numbers cut to size. Halves are decoded and encoded by whole numbers of units in the last place.
 * Floats use the compiler's own arithmetic. It is written to be read. */
#include "support/oracle.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct format { int exponent, fraction; uint64_t quiet; };

static const struct format formats[] = {
    [TUTTI_F16] = { 5, 10, 0x7e00 }, [TUTTI_BF16] = { 8, 7, 0x7fc0 },
    [TUTTI_F32] = { 8, 23, 0x7fc00000 }, [TUTTI_F64] = { 11, 52, 0x7ff8000000000000 },
    [TUTTI_F8E4M3] = { 4, 3, 0x7f }, [TUTTI_F8E5M2] = { 5, 2, 0x7e }
};

static bool is_float(int type)
{
    return (type >= TUTTI_F16 && type <= TUTTI_F64) || type >= TUTTI_F8E4M3;
}

static bool is_signed(int type) { return type <= TUTTI_I64 && type % 2 == 0; }
static bool is_complex(int type) { return type == TUTTI_C64 || type == TUTTI_C128; }

size_t oracle_width(int type)
{
    static const size_t widths[] = { 1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8, 1, 8, 16, 1, 1 };
    return widths[type];
}

bool oracle_allowed(int type, int op)
{
    if (op >= OP_TAKE)
        return op == OP_TAKE || oracle_width(type) >= 4;
    if (op == TUTTI_PREMUL_SUM)
        return type != TUTTI_BOOL;
    if (is_complex(type))
        return op == TUTTI_SUM || op == TUTTI_PROD || op == TUTTI_AVG;
    return is_float(type) ? op <= TUTTI_AVG : type != TUTTI_BOOL || op != TUTTI_AVG;
}

static uint64_t get(const unsigned char *from, size_t width)
{
    uint64_t bits = 0;
    for (size_t i = 0; i < width; i++)
        bits |= (uint64_t)from[i] << 8 * i;
    return bits;
}

static void put(unsigned char *to, uint64_t bits, size_t width)
{
    for (size_t i = 0; i < width; i++)
        to[i] = (unsigned char)(bits >> 8 * i);
}

/* ---- integers and bool ---- */

static int64_t as_signed(uint64_t bits, int type)
{
    switch (type) {
    case TUTTI_I8: return (int8_t)bits;
    case TUTTI_I16: return (int16_t)bits;
    case TUTTI_I32: return (int32_t)bits;
    default: return (int64_t)bits;
    }
}

static bool below(uint64_t a, uint64_t b, int type)
{
    return is_signed(type) ? as_signed(a, type) < as_signed(b, type) : a < b;
}

static uint64_t whole_step(uint64_t a, uint64_t b, int type, int op)
{
    switch (op) {
    case TUTTI_SUM: return a + b;
    case TUTTI_PROD: return a * b;
    case TUTTI_MIN: return below(b, a, type) ? b : a;
    case TUTTI_MAX: return below(a, b, type) ? b : a;
    case TUTTI_BAND: return a & b;
    case TUTTI_BOR: return a | b;
    case TUTTI_BXOR: return a ^ b;
    case TUTTI_LAND: return a != 0 && b != 0;
    case TUTTI_LOR: return a != 0 || b != 0;
    case TUTTI_LXOR: return (a != 0) != (b != 0);
    default: abort();
    }
}

static uint64_t whole_average(const uint64_t v[], int n, int type)
{
    uint64_t sum = 0;
    for (int r = 0; r < n; r++)
        sum += is_signed(type) ? (uint64_t)as_signed(v[r], type) : v[r];
    return is_signed(type) ? (uint64_t)((int64_t)sum / n) : sum / (uint64_t)n;
}

static int truth_op(int op)
{
    switch (op) {
    case TUTTI_SUM: case TUTTI_MAX: case TUTTI_BOR: return TUTTI_LOR;
    case TUTTI_PROD: case TUTTI_MIN: case TUTTI_BAND: return TUTTI_LAND;
    case TUTTI_BXOR: return TUTTI_LXOR;
    default: return op;
    }
}

static uint64_t whole_fold(const uint64_t v[], int n, int type, int op)
{
    uint64_t mask = UINT64_MAX >> (64 - 8 * oracle_width(type));
    if (op == TUTTI_AVG)
        return whole_average(v, n, type) & mask;
    if (type == TUTTI_BOOL)
        op = truth_op(op);
    uint64_t acc = op >= TUTTI_LAND ? v[0] != 0 : v[0];
    for (int r = 1; r < n; r++)
        acc = whole_step(acc, v[r], type, op) & mask;
    return acc;
}

/* ---- floats ---- */

static double half_value(uint64_t bits, const struct format *f)
{
    int bias = (1 << (f->exponent - 1)) - 1,
        e = (int)(bits >> f->fraction & ((1u << f->exponent) - 1));
    double m = (double)(bits & ((1u << f->fraction) - 1)), one = (double)(1u << f->fraction);
    bool finite = f->quiet == 0x7f && m < 7;         /* f8e4m3 has no infinities, and one NaN */
    if (e == (1 << f->exponent) - 1 && !finite)
        m = m > 0 ? NAN : INFINITY;
    else
        m = e ? ldexp(m + one, e - bias - f->fraction) : ldexp(m, 1 - bias - f->fraction);
    return bits >> (f->exponent + f->fraction) & 1 ? -m : m;
}

/* The magnitude is a whole number of units in the last place, ties to even. A number too large for
 * the format becomes infinity. */
static uint64_t half_bits(double x, const struct format *f)
{
    int bias = (1 << (f->exponent - 1)) - 1, e;
    uint64_t sign = (uint64_t)(signbit(x) != 0) << (f->exponent + f->fraction),
             infinity = ((1u << f->exponent) - 1u) << f->fraction;
    if (isnan(x))
        return f->quiet;
    if (x == 0)
        return sign;
    if (isinf(x))
        return f->quiet == 0x7f ? f->quiet : sign | infinity;
    frexp(x, &e);
    e = e - 1 < 1 - bias ? 1 - bias : e - 1;
    double units = ldexp(fabs(x), f->fraction - e) + 0x1p52 - 0x1p52;
    uint64_t bits = ((uint64_t)(e + bias - 1) << f->fraction) + (uint64_t)units;
    if (f->quiet == 0x7f)
        return bits < f->quiet ? sign | bits : f->quiet;
    return sign | (bits < infinity ? bits : infinity);
}

static double decode(uint64_t bits, int type)
{
    float f32;
    double f64;
    uint32_t low = (uint32_t)bits;
    switch (type) {
    case TUTTI_F32: memcpy(&f32, &low, 4); return (double)f32;
    case TUTTI_F64: memcpy(&f64, &bits, 8); return f64;
    default: return half_value(bits, &formats[type]);
    }
}

static uint64_t encode(double x, int type)
{
    float f32 = (float)x;
    uint32_t low;
    uint64_t bits;
    if (isnan(x))
        return formats[type].quiet;
    switch (type) {
    case TUTTI_F32: memcpy(&low, &f32, 4); return low;
    case TUTTI_F64: memcpy(&bits, &x, 8); return bits;
    default: return half_bits((double)f32, &formats[type]);
    }
}

static double float_step(double a, double b, int type, int op)
{
    if (op == TUTTI_MIN || op == TUTTI_MAX) {
        bool a_first = a < b || (a == b && signbit(a));
        return isnan(a) || isnan(b) ? NAN : a_first == (op == TUTTI_MIN) ? a : b;
    }
    if (type == TUTTI_F64)
        return op == TUTTI_PROD ? a * b : a + b;
    return op == TUTTI_PROD ? (double)((float)a * (float)b) : (double)((float)a + (float)b);
}

static uint64_t float_fold(const uint64_t v[], const uint64_t factor[], int n, int type, int op)
{
    double acc = 0;
    for (int r = 0; r < n; r++) {
        double x = decode(v[r], type);
        if (op == TUTTI_PREMUL_SUM)
            x = float_step(x, decode(factor[r], type), type, TUTTI_PROD);
        acc = r ? float_step(acc, x, type, op) : x;
    }
    if (op == TUTTI_AVG)
        acc = type == TUTTI_F64 ? acc / n : (double)((float)acc / (float)n);
    return encode(acc, type);
}

/* ---- complex: (ac - bd) + (ad + bc)i, each of the six operations rounded by itself ---- */

struct pair { double re, im; };

static struct pair pair_times(struct pair a, struct pair b, int type)
{
    double ac = float_step(a.re, b.re, type, TUTTI_PROD),
           bd = float_step(a.im, b.im, type, TUTTI_PROD);
    double ad = float_step(a.re, b.im, type, TUTTI_PROD),
           bc = float_step(a.im, b.re, type, TUTTI_PROD);
    return (struct pair){ float_step(ac, -bd, type, TUTTI_SUM),
                          float_step(ad, bc, type, TUTTI_SUM) };
}

static struct pair pair_get(const unsigned char *from, int type)
{
    size_t half = type == TUTTI_F64 ? 8 : 4;
    return (struct pair){ decode(get(from, half), type), decode(get(from + half, half), type) };
}

static void complex_fold(unsigned char *to, const unsigned char *const v[],
                         unsigned char factor[][ORACLE_WIDTH], int n, int whole, int op)
{
    int type = whole == TUTTI_C128 ? TUTTI_F64 : TUTTI_F32;
    size_t half = type == TUTTI_F64 ? 8 : 4;
    struct pair acc = { 0, 0 };
    for (int r = 0; r < n; r++) {
        struct pair x = pair_get(v[r], type);
        if (op == TUTTI_PREMUL_SUM)
            x = pair_times(x, pair_get(factor[r], type), type);
        if (r == 0)
            acc = x;
        else if (op == TUTTI_PROD)
            acc = pair_times(acc, x, type);
        else
            acc = (struct pair){ float_step(acc.re, x.re, type, TUTTI_SUM),
                                 float_step(acc.im, x.im, type, TUTTI_SUM) };
    }
    if (op == TUTTI_AVG)
        acc = type == TUTTI_F64 ? (struct pair){ acc.re / n, acc.im / n }
                                : (struct pair){ (double)((float)acc.re / (float)n),
                                                 (double)((float)acc.im / (float)n) };
    put(to, encode(acc.re, type), half);
    put(to + half, encode(acc.im, type), half);
}

/* ---- the user's ---- */

static uint64_t affine(uint64_t left, uint64_t right, unsigned half)
{
    uint64_t mask = UINT64_MAX >> (64 - half), a = left & mask, b = left >> half, c = right & mask,
             d = right >> half;
    return (a * c & mask) | ((a * d + b) & mask) << half;
}

/* out = left, right composed; out may be either of them. */
static void user_step(unsigned char *out, const unsigned char *left, const unsigned char *right,
                      size_t width, int op)
{
    if (op == OP_TAKE)
        memmove(out, left[0] % 2 ? right : left, width);
    else
        for (size_t i = 0; i < width; i += width < 8 ? 4 : 8) {
            size_t part = width < 8 ? 4 : 8;
            put(out + i, affine(get(left + i, part), get(right + i, part), (unsigned)(4 * part)),
                part);
        }
}

static void user(const void *in, void *inout, size_t count, tutti_type type, int op)
{
    size_t width = oracle_width((int)type);
    for (size_t i = 0; i < count; i++)
        user_step((unsigned char *)inout + i * width, (const unsigned char *)in + i * width,
                  (unsigned char *)inout + i * width, width, op);
}

void oracle_user_take(const void *in, void *inout, size_t count, tutti_type type)
{
    user(in, inout, count, type, OP_TAKE);
}

void oracle_user_affine(const void *in, void *inout, size_t count, tutti_type type)
{
    user(in, inout, count, type, OP_AFFINE);
}

/* ---- all ---- */

static void fold_one(unsigned char *to, const struct oracle_case *c, const unsigned char *const v[],
                     unsigned char factor[][ORACLE_WIDTH], int n)
{
    int type = c->v[DIM_TYPE], op = c->v[DIM_OP];
    size_t width = oracle_width(type);
    uint64_t bits[ORACLE_RANKS] = { 0 }, by[ORACLE_RANKS] = { 0 };
    if (op >= OP_TAKE) {
        memcpy(to, v[0], width);
        for (int r = 1; r < n; r++)
            user_step(to, to, v[r], width, op);
        return;
    }
    if (is_complex(type)) {
        complex_fold(to, v, factor, n, type, op);
        return;
    }
    for (int r = 0; r < n; r++) {
        bits[r] = get(v[r], width);
        by[r] = op == TUTTI_PREMUL_SUM ? get(factor[r], width) : 1;
        if (!is_float(type) && op == TUTTI_PREMUL_SUM)
            bits[r] *= by[r];
    }
    put(to,
        is_float(type) ? float_fold(bits, by, n, type, op)
                       : whole_fold(bits, n, type, op == TUTTI_PREMUL_SUM ? TUTTI_SUM : op),
        width);
}

void oracle_fold(void *tile, const struct oracle_case *c, int ranks, int to)
{
    size_t width = oracle_width(c->v[DIM_TYPE]);
    unsigned char given[ORACLE_RANKS][ORACLE_PERIOD * ORACLE_WIDTH],
        factor[ORACLE_RANKS][ORACLE_WIDTH];
    const unsigned char *v[ORACLE_RANKS];
    for (int r = 0; r < ranks; r++) {
        oracle_values(given[r], c, r, to);
        oracle_factor(factor[r], c, r);
    }
    for (size_t i = 0; i < ORACLE_PERIOD; i++) {
        for (int r = 0; r < ranks; r++)
            v[r] = given[r] + i * width;
        fold_one((unsigned char *)tile + i * width, c, v, factor, ranks);
    }
}

/* ---- what ranks give ---- */

static uint64_t float_value(uint64_t any, int type, int pattern)
{
    const struct format *f = &formats[type];
    uint64_t exponents = (UINT64_C(1) << f->exponent) - 1,
             fraction = any >> 4 & ((UINT64_C(1) << f->fraction) - 1);
    uint64_t sign = (any & 1) << (f->exponent + f->fraction), one = (exponents >> 1) << f->fraction;
    switch (pattern) {
    case PATTERN_NEAR: return sign | (one - ((any >> 1 & 1) << f->fraction)) | fraction;
    case PATTERN_DENORMAL: return sign | (any >> 1 & 1) << f->fraction | fraction;
    case PATTERN_SPECIAL: break;
    default: return any & (UINT64_MAX >> (63 - f->exponent - f->fraction));
    }
    switch (any >> 60) {
    case 0: case 1: return sign;
    case 2: return sign | 1;
    case 3: return sign | ((UINT64_C(1) << f->fraction) - 1);
    case 4: return sign | ((exponents << f->fraction) - 1);
    case 5: return sign | exponents << f->fraction;
    case 6: return any >> 1 & 1 ? sign | exponents << f->fraction | (fraction | 1) : sign | one;
    default: return sign | (one - ((any >> 1 & 1) << f->fraction)) | fraction;
    }
}

static uint64_t whole_value(uint64_t any, int type, int pattern)
{
    uint64_t mask = UINT64_MAX >> (64 - 8 * oracle_width(type)), least = (mask >> 1) + 1;
    if (type == TUTTI_BOOL)
        return any >> 8 & 1 ? any & 0xff : any >> 9 & 1;
    if (pattern == PATTERN_NEAR)
        return (any % 7 - (is_signed(type) ? 3 : 0)) & mask;
    if (pattern != PATTERN_SPECIAL)
        return any & mask;
    const uint64_t special[] = { 0, 1, mask, least, least - 1, any & mask, any & 15, 0 };
    return special[any >> 61];
}

static void value(unsigned char *to, uint64_t any, int type, int pattern)
{
    size_t width = oracle_width(type);
    if (is_complex(type)) {
        int part = type == TUTTI_C64 ? TUTTI_F32 : TUTTI_F64;
        put(to, float_value(any, part, pattern), width / 2);
        put(to + width / 2, float_value(any * UINT64_C(0x9e3779b97f4a7c15), part, pattern),
            width / 2);
    } else
        put(to, is_float(type) ? float_value(any, type, pattern) : whole_value(any, type, pattern),
            width);
}

void oracle_values(void *tile, const struct oracle_case *c, int rank, int to)
{
    int type = c->v[DIM_TYPE];
    size_t width = oracle_width(type);
    uint64_t seed = c->salt ^ (uint64_t)(rank + 1 + 64 * to) * UINT64_C(0xd1342543de82ef95);
    for (size_t i = 0; i < ORACLE_PERIOD; i++)
        value((unsigned char *)tile + i * width, oracle_any(&seed), type, c->v[DIM_PATTERN]);
}

void oracle_factor(void *factor, const struct oracle_case *c, int rank)
{
    uint64_t seed = c->salt + (uint64_t)(rank + 1) * UINT64_C(0xa0761d6478bd642f);
    value(factor, oracle_any(&seed), c->v[DIM_TYPE],
          oracle_any(&seed) % 2 ? c->v[DIM_PATTERN] : PATTERN_NEAR);
}
