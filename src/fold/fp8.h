/* Job:   convert 8-bit floats to f32 and back, one vector register of f32 at a time, in the
 *        compiler's vector types.
 * Owns:  nothing.
 * Never: touches memory: each instruction set moves bytes into lanes of 32 bits and back.
 *
 *          sign, exponent, fraction   bias   largest          NaN
 *   E4M3   1 + 4 + 3                  7      448 = 0x7e       0x7f, 0xff; there is no infinity
 *   E5M2   1 + 5 + 2                  15     57344 = 0x7b     above 0x7c, which is infinity; the
 *                                                             top byte of an f16
 *
 * Widening. The bits of an E4M3, shifted to the top of an f16's magnitude, read as an f16 that is
 * 256 times too small, since its exponent counts from 15 and not from 7. Nothing else differs;
 * denormals stay denormals. Processors that widen f16 widen both types that way, exactly.
 *
 * Narrowing rounds the f32 once, to nearest even, never by way of f16. Above the smallest normal
 * number rounding is an integer addition, which carries into the exponent by itself. Below it, the
 * last bit of the number added weighs as much as the smallest denormal, so the addition rounds as
 * it must. Comparisons are signed: magnitudes are never negative, and base SSE2 has no unsigned
 * ones. */
#ifndef FOLD_SMALL_H
#define FOLD_SMALL_H

#include "fold/vector.h"

static inline vec fp8_more(vec a, int32_t than)
{
    return (vec)((i32v)a > (i32v)vector_all_32((uint32_t)than));
}

/* v: an E4M3 that was read as an f16. Its NaN was read as 480, which would follow the largest
 * number. */
static inline vec fp8_from_f16_e4m3(vec v)
{
    v = vector_prod_f32(v, (vec)((f32v){0} + 256.0f));
    return v | (fp8_more(v & vector_all_32(INT32_MAX), 0x43efffff) & vector_all_32(0x7fc00000));
}

/* The element is in the low byte of each lane, with zeros above it. A denormal is a count of units
 * of the last place, and is converted like any integer. last: the largest code of a number. beyond:
 * the bits that the codes after it lack. */
#define SMALL_WIDE(type, fraction, bias, unit, last, beyond) \
    static inline vec fp8_wide_##type(vec byte) \
    { \
        vec  rest = byte & vector_all_32(0x7f); \
        f32v count = __builtin_convertvector((i32v)rest, f32v); \
        vec  tiny = (vec)(count * unit); \
        vec  wide = (vec)(((u32v)rest << (23 - fraction)) + ((127u - bias) << 23)); \
        wide = vector_pick(fp8_more(rest, (1 << fraction) - 1), wide, tiny); \
        wide |= fp8_more(rest, last) & vector_all_32(beyond); \
        return wide | (vec)((u32v)(byte ^ rest) << 24); \
    }

/* The code of a magnitude in range. least: the smallest normal number. counter: 2^23 of the
 * smallest denormals. */
#define SMALL_CODE(type, fraction, bias, least, counter)                                           \
    static inline vec fp8_code_##type(vec rest)                                                    \
    {                                                                                              \
        vec  tiny = (vec)((u32v)((f32v)rest + counter) - (u32v)((f32v){0} + counter));             \
        u32v odd = (u32v)rest >> (23 - fraction) & 1;                                              \
        u32v base = (u32v)rest - ((127u - bias) << 23) + ((1u << (22 - fraction)) - 1);            \
        return vector_pick(fp8_more(rest, least - 1), (vec)((base + odd) >> (23 - fraction)),      \
                           tiny);                                                                  \
    }

/* clang-format off */
SMALL_WIDE(e4m3, 3, 7, 0x1p-9f, 0x7e, 0x7fc00000)
SMALL_WIDE(e5m2, 2, 15, 0x1p-16f, 0x7b, 0x7f800000)
SMALL_CODE(e4m3, 3, 7, 0x3c800000, 0x1p14f)
SMALL_CODE(e5m2, 2, 15, 0x38800000, 0x1p7f)
/* clang-format on */

/* 464 is halfway between 448 and 480, which would come next. It goes to 448, whose code is even. */
static inline vec fp8_round_e4m3(vec v)
{
    vec rest = v & vector_all_32(INT32_MAX);
    vec code = fp8_code_e4m3(rest) | (vec)((u32v)(v ^ rest) >> 24);
    return vector_pick(fp8_more(rest, 0x43e80000), vector_all_32(0x7f), code);
}

/* From 61440, halfway between 57344 and 65536, rounding gives infinity by itself. From 65536 on it
 * would go beyond. */
static inline vec fp8_round_e5m2(vec v)
{
    vec rest = v & vector_all_32(INT32_MAX);
    vec code = vector_pick(fp8_more(rest, 0x47800000), vector_all_32(0x7c), fp8_code_e5m2(rest));
    return vector_pick(fp8_more(rest, 0x7f800000), vector_all_32(0x7e),
                       code | (vec)((u32v)(v ^ rest) >> 24));
}

#endif
