/* Job:   move fewer bytes than a register from and to memory, for processors without a masked load.
 * Owns:  nothing.
 * Never: touches another byte: it may be another rank's, or not there at all.
 *
 * The other bytes of the register are 0. Two overlapping moves of a power of two cover any length
 * without a loop or a call. A register is built from integers: bytes that are written with one
 * width and read with another stall the processor for 6 ns, for each rank of a tiny all_reduce. */
#ifndef FOLD_FEW_H
#define FOLD_FEW_H

#include "fold/vector.h"

static inline void tail_copy(uint8_t *to, const uint8_t *from, size_t bytes)
{
    if (bytes >= 16) {
        memcpy(to, from, 16);
        memcpy(to + bytes - 16, from + bytes - 16, 16);
    } else if (bytes >= 8) {
        memcpy(to, from, 8);
        memcpy(to + bytes - 8, from + bytes - 8, 8);
    } else if (bytes >= 4) {
        memcpy(to, from, 4);
        memcpy(to + bytes - 4, from + bytes - 4, 4);
    } else if (bytes >= 2) {
        memcpy(to, from, 2);
        memcpy(to + bytes - 2, from + bytes - 2, 2);
    } else {
        *to = *from;
    }
}

/* 1 to 8 bytes; the first is the lowest. Where two loads overlap, both give the same bits. */
static inline uint64_t tail_word(const uint8_t *from, size_t bytes)
{
    uint16_t low2, high2;
    uint32_t low4, high4;
    uint64_t all8;
    if (bytes >= 8) {
        memcpy(&all8, from, 8);
        return all8;
    }
    if (bytes >= 4) {
        memcpy(&low4, from, 4);
        memcpy(&high4, from + bytes - 4, 4);
        return low4 | (uint64_t)high4 << 8 * (bytes - 4);
    }
    if (bytes >= 2) {
        memcpy(&low2, from, 2);
        memcpy(&high2, from + bytes - 2, 2);
        return low2 | (uint64_t)high2 << 8 * (bytes - 2);
    }
    return *from;
}

static inline uint64_t tail_word_at(const uint8_t *from, size_t bytes, size_t at)
{
    return at < bytes ? tail_word(from + at, bytes - at) : 0;
}

/* Named one by one: a loop would build the register in memory. */
#if LANES_BYTES == 16
static inline vec tail_words(const uint8_t *from, size_t bytes)
{
    return (vec)(u64v){tail_word_at(from, bytes, 0), tail_word_at(from, bytes, 8)};
}
#else
static inline vec tail_words(const uint8_t *from, size_t bytes)
{
    return (vec)(u64v){ tail_word_at(from, bytes, 0), tail_word_at(from, bytes, 8),
                        tail_word_at(from, bytes, 16), tail_word_at(from, bytes, 24) };
}
#endif

static inline vec tail_load(const uint8_t *from, size_t bytes)
{
    uint8_t buffer[LANES_BYTES] = {0};
    if (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
        return tail_words(from, bytes);
    tail_copy(buffer, from, bytes);
    return vector_load(buffer);
}

static inline void tail_store(uint8_t *to, const uint8_t *from, size_t bytes)
{
    tail_copy(to, from, bytes);
}

#endif
