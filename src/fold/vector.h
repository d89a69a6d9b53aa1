/* Job:   define the arithmetic of one vector register, in the compiler's vector types: the parts of
 *        a kernel's load, step and finish.
 * Owns:  nothing.
 * Never: handles pointers to more than one vector, counts or contributions (kernels.h).
 *
 * The file of each instruction set includes this once. Before, it defines LANES_BYTES, the width of
 * its registers. The compiler's vector types compile to that set's own instructions at -O1 already,
 * do not depend on an optimiser that recognises loops, and mean the same on every target. So all
 * sets share this text, and give the same bits.
 *
 * One type, vec, carries a register through all functions. Each function reads it as the lanes it
 * needs. */
#ifndef FOLD_LANES_H
#define FOLD_LANES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define LANES_OF(bytes) __attribute__((vector_size(bytes)))

typedef uint8_t  vec LANES_OF(LANES_BYTES);
typedef uint8_t  u8v LANES_OF(LANES_BYTES);
typedef uint16_t u16v LANES_OF(LANES_BYTES);
typedef uint32_t u32v LANES_OF(LANES_BYTES);
typedef uint64_t u64v LANES_OF(LANES_BYTES);
typedef int8_t   i8v LANES_OF(LANES_BYTES);
typedef int16_t  i16v LANES_OF(LANES_BYTES);
typedef int32_t  i32v LANES_OF(LANES_BYTES);
typedef int64_t  i64v LANES_OF(LANES_BYTES);
typedef float    f32v LANES_OF(LANES_BYTES);
typedef double   f64v LANES_OF(LANES_BYTES);

static inline vec vector_load(const uint8_t *from)
{
    vec v;
    memcpy(&v, from, sizeof v);
    return v;
}

static inline void vector_store(uint8_t *to, vec v)
{
    memcpy(to, &v, sizeof v);
}

static inline vec vector_pick(vec mask, vec yes, vec no)
{
    return (mask & yes) | (~mask & no);
}

static inline vec vector_as_is(vec v, int divisor)
{
    (void)divisor;
    return v;
}

/* Integers. SUM and PROD wrap and do not depend on the sign, so they are computed unsigned. A truth
 * value is a lane of ones or zeros, cut to 0 or 1 at the end. */
#define LANES_UNSIGNED(bits) \
    static inline vec vector_all_##bits(uint##bits##_t x) { return (vec)((u##bits##v){0} + x); } \
    static inline vec vector_sum_##bits(vec a, vec b) \
    { \
        return (vec)((u##bits##v)a + (u##bits##v)b); \
    } \
    static inline vec vector_prod_##bits(vec a, vec b) \
    { \
        return (vec)((u##bits##v)a * (u##bits##v)b); \
    } \
    static inline vec vector_truth_##bits(const uint8_t *from) \
    { \
        return (vec)((u##bits##v)vector_load(from) != 0); \
    } \
    static inline vec vector_one_##bits(vec v, int divisor) \
    { \
        (void)divisor; \
        return v & vector_all_##bits(1); \
    }

#define LANES_ORDERED(type) \
    static inline vec vector_min_##type(vec a, vec b) \
    { \
        return vector_pick((vec)((type##v)a < (type##v)b), a, b); \
    } \
    static inline vec vector_max_##type(vec a, vec b) \
    { \
        return vector_pick((vec)((type##v)a > (type##v)b), a, b); \
    }

static inline vec vector_and(vec a, vec b) { return a & b; }
static inline vec vector_or(vec a, vec b) { return a | b; }
static inline vec vector_xor(vec a, vec b) { return a ^ b; }

/* Floats, arithmetic. Every NaN is written as the one quiet NaN, whatever payload and sign the
 * processor gave it. */
#define LANES_FLOAT(type, bits, number, quiet) \
    static inline vec vector_sum_##type(vec a, vec b) { return (vec)((type##v)a + (type##v)b); } \
    static inline vec vector_prod_##type(vec a, vec b) { return (vec)((type##v)a * (type##v)b); } \
    static inline vec vector_finish_##type(vec v, int divisor) \
    { \
        (void)divisor; \
        return vector_pick((vec)((type##v)v != (type##v)v), vector_all_##bits(quiet), v); \
    } \
    static inline vec vector_average_##type(vec v, int divisor) \
    { \
        return vector_finish_##type((vec)((type##v)v / ((type##v){0} + (number)divisor)), \
                                    divisor); \
    }

/* f32 to bf16, to nearest even, in the low half of each lane. Before, every NaN was made the quiet
 * one, whose low half is 0. */
static inline vec vector_round_bf16(vec v)
{
    u32v bits = (u32v)v;
    return (vec)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* Floats, MIN and MAX: as signed integers. If the magnitude bits of negative numbers are inverted,
 * the order of floats is the order of integers, -0 < +0 included. A second inversion restores them.
 * A NaN's magnitude is above infinity's: with the sign set it is below everything, without it
 * above. So load gives it the sign that makes it win. Halves and 8-bit floats need no widening
 * here. `largest` is the greatest magnitude that is no NaN: infinity, or E4M3's largest number. */
#define LANES_TURN(bits) \
    static inline vec vector_turn_##bits(vec v) \
    { \
        return v ^ ((vec)((i##bits##v)v < 0) & vector_all_##bits(INT##bits##_MAX)); \
    }

#define LANES_EXTREME(type, bits, largest, quiet) \
    static inline vec vector_nan_##type(vec v) \
    { \
        return (vec)((i##bits##v)(v & vector_all_##bits(INT##bits##_MAX)) \
                     > (i##bits##v)vector_all_##bits(largest)); \
    } \
    static inline vec vector_low_##type(const uint8_t *from) \
    { \
        vec v = vector_load(from); \
        return vector_turn_##bits(v \
                                  | (vector_nan_##type(v) & ~vector_all_##bits(INT##bits##_MAX))); \
    } \
    static inline vec vector_high_##type(const uint8_t *from) \
    { \
        vec v = vector_load(from); \
        return vector_turn_##bits(v & (~vector_nan_##type(v) \
                                       | vector_all_##bits(INT##bits##_MAX))); \
    } \
    static inline vec vector_back_##type(vec v, int divisor) \
    { \
        (void)divisor; \
        v = vector_turn_##bits(v); \
        return vector_pick(vector_nan_##type(v), vector_all_##bits(quiet), v); \
    }

/* clang-format off */
LANES_UNSIGNED(8)
LANES_UNSIGNED(16)
LANES_UNSIGNED(32)
LANES_UNSIGNED(64)
LANES_ORDERED(i8)
LANES_ORDERED(i16)
LANES_ORDERED(i32)
LANES_ORDERED(i64)
LANES_ORDERED(u8)
LANES_ORDERED(u16)
LANES_ORDERED(u32)
LANES_ORDERED(u64)
LANES_FLOAT(f32, 32, float, 0x7fc00000)
LANES_FLOAT(f64, 64, double, 0x7ff8000000000000)
LANES_TURN(8)
LANES_TURN(16)
LANES_TURN(32)
LANES_TURN(64)
LANES_EXTREME(f8e4m3, 8, 0x7e, 0x7f)
LANES_EXTREME(f8e5m2, 8, 0x7c, 0x7e)
LANES_EXTREME(f16, 16, 0x7c00, 0x7e00)
LANES_EXTREME(bf16, 16, 0x7f80, 0x7fc0)
LANES_EXTREME(f32, 32, 0x7f800000, 0x7fc00000)
LANES_EXTREME(f64, 64, 0x7ff0000000000000, 0x7ff8000000000000)
/* clang-format on */

/* A register with the same element, of 1 to 16 bytes, in every place. */
static inline vec vector_spread(const uint8_t *one, size_t size)
{
    static const uint64_t first[8] = {UINT64_MAX, 0, UINT64_MAX, 0, UINT64_MAX, 0, UINT64_MAX, 0};
    uint16_t              two;
    uint32_t              four;
    uint64_t              eight[2] = {0};
    switch (size) {
    case 1:
        return vector_all_8(*one);
    case 2:
        memcpy(&two, one, 2);
        return vector_all_16(two);
    case 4:
        memcpy(&four, one, 4);
        return vector_all_32(four);
    case 8:
        memcpy(eight, one, 8);
        return vector_all_64(eight[0]);
    default:
        memcpy(eight, one, 16);
        return vector_pick(vector_load((const uint8_t *)first), vector_all_64(eight[0]),
                           vector_all_64(eight[1]));
    }
}

#endif
