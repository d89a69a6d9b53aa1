/* Job:   convert one f16 or bf16 to f32 and back, in software.
 * Owns:  nothing.
 * Never: uses vectors; computes.
 *
 * Rounds to nearest, ties to even, once. Denormals are exact both ways. Overflow is an infinity.
 * Every NaN becomes the one positive quiet NaN of the type it is written in. */
#ifndef FOLD_HALF_H
#define FOLD_HALF_H

#include <stdint.h>
#include <string.h>

static inline uint32_t half_bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float half_from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline float half_f32_from_f16(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
    uint32_t rest = half & 0x7fffu;
    if (rest > 0x7c00u)
        return half_from_bits(0x7fc00000u);
    if (rest == 0x7c00u)
        return half_from_bits(sign | 0x7f800000u);
    /* a denormal is a count of 2^-24, and f32 has room for that as a normal number */
    if (rest < 0x0400u)
        return half_from_bits(sign | half_bits_of((float)rest * 0x1p-24f));
    return half_from_bits(sign | ((rest << 13) + ((127u - 15u) << 23)));
}

static inline uint16_t half_f16_from_f32(float value)
{
    uint32_t bits = half_bits_of(value);
    uint32_t sign = bits >> 16 & 0x8000u;
    uint32_t rest = bits & 0x7fffffffu;
    if (rest > 0x7f800000u)
        return 0x7e00u;
    /* 65520: halfway between the largest f16 and the next power of two; the tie goes up */
    if (rest >= 0x477ff000u)
        return (uint16_t)(sign | 0x7c00u);
    /* below 2^-14. The last bit of 0.5f weighs 2^-24, so the addition rounds as f16 must */
    if (rest < 0x38800000u)
        return (uint16_t)(sign | (half_bits_of(half_from_bits(rest) + 0.5f) - half_bits_of(0.5f)));
    rest += 0x0fffu + (rest >> 13 & 1u);
    return (uint16_t)(sign | ((rest - ((127u - 15u) << 23)) >> 13));
}

static inline float half_f32_from_bf16(uint16_t half)
{
    if ((half & 0x7fffu) > 0x7f80u)
        return half_from_bits(0x7fc00000u);
    return half_from_bits((uint32_t)half << 16);
}

static inline uint16_t half_bf16_from_f32(float value)
{
    uint32_t bits = half_bits_of(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return 0x7fc0u;
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

#endif
