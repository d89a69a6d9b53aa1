/* Job:   compute TUTTI_AVG of integers: sums in 64 bits, wrapping, then one division that truncates
 *        toward zero.
 * Owns:  nothing.
 * Never: depends on an instruction set. No processor divides 64-bit vectors, so one loop serves
 *        all.
 *
 * A block of sums stays in the first-level cache. dst may be a contribution, so a block of it is
 * written after that block of all contributions was read. Elements of at most 32 bits from at most
 * 2^20 ranks sum to less than 2^53. There the division runs in double: several times faster, and
 * still exact. A quotient that is not whole is at least 1/divisor away from the next whole number,
 * more than the rounding can bridge. */
#ifndef FOLD_AVERAGE_H
#define FOLD_AVERAGE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define AVERAGE_INLINE static inline __attribute__((always_inline))

enum { AVERAGE_BLOCK = 512 };

AVERAGE_INLINE uint64_t average_get(const uint8_t *from, size_t size, int is_signed)
{
    uint8_t  one;
    uint16_t two;
    uint32_t four;
    uint64_t eight;
    switch (size) {
    case 1:
        memcpy(&one, from, 1);
        return is_signed ? (uint64_t)(int8_t)one : one;
    case 2:
        memcpy(&two, from, 2);
        return is_signed ? (uint64_t)(int16_t)two : two;
    case 4:
        memcpy(&four, from, 4);
        return is_signed ? (uint64_t)(int32_t)four : four;
    default:
        memcpy(&eight, from, 8);
        return eight;
    }
}

AVERAGE_INLINE void average_put(uint8_t *to, uint64_t value, size_t size)
{
    uint8_t  one = (uint8_t)value;
    uint16_t two = (uint16_t)value;
    uint32_t four = (uint32_t)value;
    switch (size) {
    case 1: memcpy(to, &one, 1); break;
    case 2: memcpy(to, &two, 2); break;
    case 4: memcpy(to, &four, 4); break;
    default: memcpy(to, &value, 8);
    }
}

AVERAGE_INLINE void average_block(uint8_t *to, const void *const src[], int n, size_t at,
                                  size_t count, int divisor, size_t size, int is_signed)
{
    uint64_t sum[AVERAGE_BLOCK];
    for (size_t i = 0; i < count; i++)
        sum[i] = average_get((const uint8_t *)src[0] + (at + i) * size, size, is_signed);
    for (int r = 1; r < n; r++) {
        const uint8_t *from = (const uint8_t *)src[r] + at * size;
        for (size_t i = 0; i < count; i++)
            sum[i] += average_get(from + i * size, size, is_signed);
    }
    to += at * size;
    if (size < 8 && n <= 1 << 20)
        for (size_t i = 0; i < count; i++)
            average_put(to + i * size, (uint64_t)(int64_t)((double)(int64_t)sum[i] / divisor),
                        size);
    else if (is_signed)
        for (size_t i = 0; i < count; i++)
            average_put(to + i * size, (uint64_t)((int64_t)sum[i] / divisor), size);
    else
        for (size_t i = 0; i < count; i++)
            average_put(to + i * size, sum[i] / (uint64_t)divisor, size);
}

AVERAGE_INLINE void average_walk(void *dst, const void *const src[], int n, size_t count,
                                 int divisor, size_t size, int is_signed)
{
    for (size_t at = 0; at < count; at += AVERAGE_BLOCK) {
        size_t left = count - at;
        average_block(dst, src, n, at, left < AVERAGE_BLOCK ? left : AVERAGE_BLOCK, divisor, size,
                      is_signed);
    }
}

#define AVERAGE(type, size, is_signed)                                                             \
    static void average_##type(void *dst, const void *const src[], int n, size_t count,            \
                               int divisor)                                                        \
    {                                                                                              \
        average_walk(dst, src, n, count, divisor, size, is_signed);                                \
    }

/* clang-format off */
AVERAGE(i8, 1, 1)
AVERAGE(u8, 1, 0)
AVERAGE(i16, 2, 1)
AVERAGE(u16, 2, 0)
AVERAGE(i32, 4, 1)
AVERAGE(u32, 4, 0)
AVERAGE(i64, 8, 1)
AVERAGE(u64, 8, 0)
/* clang-format on */

#endif
