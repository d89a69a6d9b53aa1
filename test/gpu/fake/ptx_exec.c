/* What instructions do to registers. Each case is a loop over the lanes with the arithmetic written
 * out. Results of f32 that are no number become the one NaN that a GPU makes (0x7fffffff); f64
 * leaves what the processor makes. Subnormal numbers are kept. */
#include "fake/ptx.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static float f32(uint64_t bits)
{
    uint32_t low = (uint32_t)bits;
    float value;
    memcpy(&value, &low, 4);
    return value;
}

static uint64_t of_f32(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, 4);
    return value != value ? 0x7fffffff : bits;
}

static double f64(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, 8);
    return value;
}

static uint64_t of_f64(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, 8);
    return bits;
}

static uint64_t mask_of(int bits) { return bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1; }
static int64_t extend(uint64_t v, int bits) { return (int64_t)(v << (64 - bits)) >> (64 - bits); }

/* By the definition of the format, in a type that holds all its numbers. */
static uint64_t f16_to_f32(uint64_t half)
{
    int exponent = (int)(half >> 10 & 31);
    double fraction = (double)(half & 1023), sign = half & 0x8000 ? -1 : 1;
    if (exponent == 31)
        return fraction > 0 ? 0x7fffffff : of_f32((float)(sign * INFINITY));
    return of_f32(
        (float)(sign * (exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24))));
}

static uint64_t f32_to_f16(uint64_t bits)
{
    double value = (double)f32(bits), size = fabs(value);
    uint64_t sign = bits >> 16 & 0x8000;
    int exponent = 0;
    if (value != value)
        return 0x7fff;
    if (size >= 65520)
        return sign | 0x7c00;
    (void)frexp(size, &exponent);                    /* size is in [2^(exponent - 1), 2^exponent) */
    int last = size == 0 || exponent - 11 < -24 ? -24 : exponent - 11;
    /* of units in the last place; 2048 carries by itself */
    uint64_t count = (uint64_t)nearbyint(ldexp(size, -last));
    return sign | ((uint64_t)(last + 24) * 1024 + count);
}

static uint64_t to_whole(double value, struct ptx_type to, enum ptx_round round)
{
    double whole = round == PTX_RNI ? nearbyint(value) : trunc(value);
    double low = to.kind == 's' ? -ldexp(1, to.bits - 1) : 0,
           high = ldexp(1, to.kind == 's' ? to.bits - 1 : to.bits);
    if (value != value)
        return 0;
    if (whole >= high)
        return to.kind == 's' ? mask_of(to.bits) >> 1 : mask_of(to.bits);
    if (whole <= low)
        return to.kind == 's' ? (UINT64_C(1) << (to.bits - 1)) : 0;
    return (to.kind == 's' ? (uint64_t)(int64_t)whole : (uint64_t)whole) & mask_of(to.bits);
}

static uint64_t convert(const struct ptx_op *op, uint64_t v)
{
    struct ptx_type to = op->type, from = op->from;
    v &= mask_of(from.bits);
    if (from.kind == 'f' && to.kind == 'f') {
        if (from.bits == 16)
            return f16_to_f32(v);
        if (to.bits == 16)
            return f32_to_f16(v);
        if (to.bits == from.bits)
            return v;
        return to.bits == 64 ? of_f64((double)f32(v)) : of_f32((float)f64(v));
    }
    if (from.kind == 'f')
        return to_whole(from.bits == 64 ? f64(v) : (double)f32(v), to, op->round);
    if (from.kind == 's')
        v = (uint64_t)extend(v, from.bits);
    if (to.kind != 'f')
        return v & mask_of(to.bits);
    if (to.bits == 64)
        return of_f64(from.kind == 's' ? (double)(int64_t)v : (double)v);
    return of_f32(from.kind == 's' ? (float)(int64_t)v : (float)v);
}

static uint64_t compare(const struct ptx_op *op, uint64_t a, uint64_t b)
{
    bool less, equal, nan = false;
    if (op->type.kind == 'f') {
        double x = op->type.bits == 64 ? f64(a) : (double)f32(a),
               y = op->type.bits == 64 ? f64(b) : (double)f32(b);
        nan = x != x || y != y;
        less = x < y;
        equal = x == y;
    } else {
        int64_t x = extend(a, op->type.bits), y = extend(b, op->type.bits);
        less = op->type.kind == 's' ? x < y : a < b;
        equal = a == b;
    }
    if (nan)
        return op->unordered;
    switch (op->compare) {
    case PTX_EQ: return equal;
    case PTX_NE: return !equal;
    case PTX_LT: return less;
    case PTX_LE: return less || equal;
    case PTX_GT: return !less && !equal;
    case PTX_GE: return !less;
    case PTX_NUM: return true;
    default: return false;
    }
}

/* -0 is less than +0; a NaN loses. */
static float lesser(float a, float b, bool turned)
{
    if (a != a || b != b)
        return a != a ? b : a;
    if (a == b)
        return (signbit(a) != 0) != turned ? a : b;
    return (a < b) != turned ? a : b;
}

static double lesser_d(double a, double b, bool turned)
{
    if (a != a || b != b)
        return a != a ? b : a;
    if (a == b)
        return (signbit(a) != 0) != turned ? a : b;
    return (a < b) != turned ? a : b;
}

static uint64_t high(uint64_t a, uint64_t b, int bits, bool sign)
{
    if (bits < 64)
        return sign ? (uint64_t)((extend(a, bits) * extend(b, bits)) >> bits) : a * b >> bits;
    uint64_t al = (uint32_t)a, ah = a >> 32, bl = (uint32_t)b, bh = b >> 32;
    uint64_t middle = ah * bl + (al * bl >> 32), other = al * bh + (uint32_t)middle;
    uint64_t top = ah * bh + (middle >> 32) + (other >> 32);
    return sign ? top - ((int64_t)a < 0 ? b : 0) - ((int64_t)b < 0 ? a : 0) : top;
}

static uint64_t shift_left(uint64_t a, uint64_t by, int bits)
{
    return by >= (uint64_t)bits ? 0 : a << by;
}

static uint64_t shift_right(uint64_t a, uint64_t by, int bits)
{
    return by >= (uint64_t)bits ? 0 : a >> by;
}

static uint64_t shift_signed(uint64_t a, uint64_t by, int bits)
{
    return (uint64_t)(extend(a, bits) >> (by >= (uint64_t)bits ? bits - 1 : (int)by));
}

static uint64_t divide(int64_t a, int64_t b, int64_t least, bool rest)
{
    if (b == 0)
        return UINT64_MAX;
    if (a == least && b == -1)
        return rest ? 0 : (uint64_t)a;
    return (uint64_t)(rest ? a % b : a / b);
}

/* Where the field reaches beyond the register, its sign is the register's. */
static uint64_t field(uint64_t a, uint64_t at, uint64_t n, int bits, bool sign)
{
    at &= 255;
    n &= 255;
    if (!n)
        return 0;
    uint64_t value = shift_right(a, at, bits),
             top = at + n - 1 < (uint64_t)bits ? at + n - 1 : (uint64_t)bits - 1;
    if (n < (uint64_t)bits)
        value &= (UINT64_C(1) << n) - 1;
    uint64_t wide = n < (uint64_t)bits ? n : (uint64_t)bits;
    if (sign && (a >> top & 1))
        for (uint64_t i = top - at + 1 < wide ? (top >= at ? top - at + 1 : 0) : wide;
             i < (uint64_t)bits; i++)
            value |= UINT64_C(1) << i;
    return value;
}

static uint64_t insert(uint64_t a, uint64_t into, uint64_t at, uint64_t n, int bits)
{
    at &= 255;
    n &= 255;
    uint64_t ones = n >= 64 ? UINT64_MAX : (UINT64_C(1) << n) - 1;
    uint64_t mask = shift_left(ones, at, bits);
    return (into & ~mask) | (shift_left(a, at, bits) & mask);
}

static uint64_t permute(uint64_t a, uint64_t b, uint64_t which)
{
    uint64_t both = (uint32_t)a | b << 32, value = 0;
    for (int i = 0; i < 4; i++) {
        uint64_t byte = both >> 8 * (which >> 4 * i & 7) & 255;
        if (which >> 4 * i & 8)
            byte = byte & 128 ? 255 : 0;
        value |= byte << 8 * i;
    }
    return value;
}

static void move_packed(const struct ptx_op *op, uint64_t *rows, int room, const uint16_t *lanes,
                        int n)
{
    int part = op->type.bits / op->vector;
    for (int j = 0; j < n; j++)
        if (op->code == PTX_UNPACK) {
            uint64_t v = op->source[0].row < 0 ? op->source[0].constant
                                               : rows[op->source[0].row * room + lanes[j]];
            for (int i = 0; i < op->vector; i++)
                rows[op->to[i].row * room + lanes[j]] = v >> part * i & mask_of(part);
        } else {
            uint64_t v = 0;
            for (int i = 0; i < op->vector; i++)
                v |= (op->source[i].row < 0 ? op->source[i].constant
                                            : rows[op->source[i].row * room + lanes[j]])
                    << part * i;
            rows[op->to[0].row * room + lanes[j]] = v;
        }
}

#define EACH(value) \
    for (int j = 0; j < n; j++) { \
        int l = lanes[j]; \
        uint64_t a = pa[l * sa], b = pb[l * sb], c = pc[l * sc]; \
        (void)a, (void)b, (void)c; \
        to[l] = (value) & mask; \
    } \
    break

void ptx_exec(const struct ptx_op *op, uint64_t *rows, int room, const uint16_t *lanes, int n)
{
    const int bits = op->type.bits;
    const struct ptx_value *s = op->source;
    const uint64_t *pa = s[0].row < 0 ? &s[0].constant : rows + s[0].row * room,
                   *pb = s[1].row < 0 ? &s[1].constant : rows + s[1].row * room;
    const uint64_t *pc = s[2].row < 0 ? &s[2].constant : rows + s[2].row * room;
    const int sa = s[0].row >= 0, sb = s[1].row >= 0, sc = s[2].row >= 0;
    uint64_t *to = rows + op->to[0].row * room, mask = mask_of(bits);
    const int64_t least = (int64_t)(UINT64_MAX << (bits - 1));
    switch (op->code) {
    case PTX_ADD: EACH(a + b);
    case PTX_ADD_F: EACH(of_f32(f32(a) + f32(b)));
    case PTX_ADD_D: EACH(of_f64(f64(a) + f64(b)));
    case PTX_SUB: EACH(a - b);
    case PTX_SUB_F: EACH(of_f32(f32(a) - f32(b)));
    case PTX_SUB_D: EACH(of_f64(f64(a) - f64(b)));
    case PTX_MUL: EACH(a * b);
    case PTX_MUL_F: EACH(of_f32(f32(a) * f32(b)));
    case PTX_MUL_D: EACH(of_f64(f64(a) * f64(b)));
    case PTX_MUL_HI: EACH(high(a, b, bits, false));
    case PTX_MUL_HI_S: EACH(high(a, b, bits, true));
    case PTX_MAD: EACH(a * b + c);
    case PTX_MUL_WIDE: mask = mask_of(2 * bits); EACH(a * b);
    case PTX_MUL_WIDE_S:
        mask = mask_of(2 * bits);
        EACH((uint64_t)(extend(a, bits) * extend(b, bits)));
    case PTX_MAD_WIDE: mask = mask_of(2 * bits); EACH(a * b + c);
    case PTX_MAD_WIDE_S:
        mask = mask_of(2 * bits);
        EACH((uint64_t)(extend(a, bits) * extend(b, bits)) + c);
    case PTX_FMA_F: EACH(of_f32(fmaf(f32(a), f32(b), f32(c))));
    case PTX_FMA_D: EACH(of_f64(fma(f64(a), f64(b), f64(c))));
    case PTX_DIV: EACH(b ? a / b : UINT64_MAX);
    case PTX_REM: EACH(b ? a % b : a);
    case PTX_DIV_S: EACH(divide(extend(a, bits), extend(b, bits), least, false));
    case PTX_REM_S: EACH(divide(extend(a, bits), extend(b, bits), least, true));
    case PTX_DIV_F: EACH(of_f32(f32(a) / f32(b)));
    case PTX_DIV_D: EACH(of_f64(f64(a) / f64(b)));
    case PTX_NEG_S: EACH(0 - a);
    case PTX_NEG_F: EACH(of_f32(-f32(a)));
    case PTX_NEG_D: EACH(of_f64(-f64(a)));
    case PTX_ABS_S: EACH(extend(a, bits) < 0 ? 0 - a : a);
    case PTX_ABS_F: EACH(of_f32(fabsf(f32(a))));
    case PTX_ABS_D: EACH(of_f64(fabs(f64(a))));
    case PTX_MIN: EACH(a < b ? a : b);
    case PTX_MAX: EACH(a > b ? a : b);
    case PTX_MIN_S: EACH(extend(a, bits) < extend(b, bits) ? a : b);
    case PTX_MAX_S: EACH(extend(a, bits) > extend(b, bits) ? a : b);
    case PTX_MIN_F: EACH(of_f32(lesser(f32(a), f32(b), false)));
    case PTX_MAX_F: EACH(of_f32(lesser(f32(a), f32(b), true)));
    case PTX_MIN_D: EACH(of_f64(lesser_d(f64(a), f64(b), false)));
    case PTX_MAX_D: EACH(of_f64(lesser_d(f64(a), f64(b), true)));
    case PTX_SQRT_F: EACH(of_f32(sqrtf(f32(a))));
    case PTX_SQRT_D: EACH(of_f64(sqrt(f64(a))));
    case PTX_AND: EACH(a & b);
    case PTX_OR: EACH(a | b);
    case PTX_XOR: EACH(a ^ b);
    case PTX_NOT: EACH(~a);
    case PTX_SHL: EACH(shift_left(a, b, bits));
    case PTX_SHR: EACH(shift_right(a, b, bits));
    case PTX_SHR_S: EACH(shift_signed(a, b, bits));
    case PTX_BFE: EACH(field(a, b, c, bits, false));
    case PTX_BFE_S: EACH(field(a, b, c, bits, true));
    case PTX_BFI: {
        const uint64_t *pd = s[3].row < 0 ? &s[3].constant : rows + s[3].row * room;
        const int sd = s[3].row >= 0;
        EACH(insert(a, b, c, pd[l * sd], bits));
    }
    case PTX_PRMT: EACH(permute(a, b, c));
    case PTX_MOV: EACH(a);
    case PTX_SELP: EACH(c ? a : b);
    case PTX_SETP: mask = 1; EACH(compare(op, a, b));
    case PTX_CVT: mask = UINT64_MAX; EACH(convert(op, a));
    case PTX_PACK:
    case PTX_UNPACK:
        move_packed(op, rows, room, lanes, n);
        break;
    default:
        abort();                                     /* ptx_run.c's */
    }
}
