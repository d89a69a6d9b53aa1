/* vector.h with one lane: the same rules, and so the same bits. Every NaN is written as the one
 * quiet NaN, here after each step. That changes nothing, since a NaN and any number give a NaN. MIN
 * and MAX of floats compare them as integers, as in vector.h. */
#include "fold/scalar.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define WORD(name) static uint64_t name(uint64_t acc, uint64_t next, unsigned divisor)

#define WORD_FLOATS(type, number, bits, quiet, largest)                                            \
    static number number_##type(uint64_t word)                                                     \
    {                                                                                              \
        uint##bits##_t low = (uint##bits##_t)word;                                                 \
        number x;                                                                                  \
        memcpy(&x, &low, sizeof x);                                                                \
        return x;                                                                                  \
    }                                                                                              \
    static uint64_t word_##type(number x)                                                          \
    {                                                                                              \
        uint##bits##_t word;                                                                       \
        memcpy(&word, &x, sizeof word);                                                            \
        return x != x ? quiet : word;                                                              \
    }                                                                                              \
    static uint##bits##_t turn_##type(uint##bits##_t word)                                         \
    {                                                                                              \
        return word ^ (word >> (bits - 1) ? INT##bits##_MAX : 0);                                  \
    }                                                                                              \
    static bool nan_##type(uint##bits##_t word) { return (word & INT##bits##_MAX) > largest; }     \
    /* As an integer in the order of the floats; a NaN at the end that wins. */                    \
    static int##bits##_t low_##type(uint##bits##_t word)                                           \
    {                                                                                              \
        return (int##bits##_t)turn_##type(nan_##type(word)                                         \
                                          ? word | (uint##bits##_t)INT##bits##_MIN : word);        \
    }                                                                                              \
    static int##bits##_t high_##type(uint##bits##_t word)                                          \
    {                                                                                              \
        return (int##bits##_t)turn_##type(nan_##type(word) ? word & INT##bits##_MAX : word);       \
    }                                                                                              \
    static uint64_t back_##type(int##bits##_t order)                                               \
    {                                                                                              \
        uint##bits##_t word = turn_##type((uint##bits##_t)order);                                  \
        return nan_##type(word) ? quiet : word;                                                    \
    }                                                                                              \
    WORD(sum_##type)                                                                               \
    {                                                                                              \
        (void)divisor;                                                                             \
        return word_##type(number_##type(acc) + number_##type(next));                              \
    }                                                                                              \
    WORD(prod_##type)                                                                              \
    {                                                                                              \
        (void)divisor;                                                                             \
        return word_##type(number_##type(acc) * number_##type(next));                              \
    }                                                                                              \
    WORD(avg_##type)                                                                               \
    {                                                                                              \
        number x = number_##type(acc) + number_##type(next);                                       \
        return word_##type(divisor ? x / (number)divisor : x);                                     \
    }                                                                                              \
    WORD(min_##type)                                                                               \
    {                                                                                              \
        int##bits##_t a = low_##type((uint##bits##_t)acc), b = low_##type((uint##bits##_t)next);   \
        (void)divisor;                                                                             \
        return back_##type(a < b ? a : b);                                                         \
    }                                                                                              \
    WORD(max_##type)                                                                               \
    {                                                                                              \
        int##bits##_t a = high_##type((uint##bits##_t)acc), b = high_##type((uint##bits##_t)next); \
        (void)divisor;                                                                             \
        return back_##type(a > b ? a : b);                                                         \
    }

#define WORD_ORDERED(type, bits)                                                                   \
    WORD(min_##type) { (void)divisor; return (type##_t)acc < (type##_t)next ? acc : next; }        \
    WORD(max_##type) { (void)divisor; return (type##_t)acc > (type##_t)next ? acc : next; }

#define WORD_BITS(bits)                                                                            \
    WORD(sum_##bits) { (void)divisor; return (uint##bits##_t)(acc + next); }                       \
    WORD(prod_##bits) { (void)divisor; return (uint##bits##_t)(acc * next); }

WORD_BITS(32)
WORD_BITS(64)
WORD_ORDERED(int32, 32)
WORD_ORDERED(uint32, 32)
WORD_ORDERED(int64, 64)
WORD_ORDERED(uint64, 64)
WORD(band) { (void)divisor; return acc & next; }
WORD(bor) { (void)divisor; return acc | next; }
WORD(bxor) { (void)divisor; return acc ^ next; }
WORD_FLOATS(f32, float, 32, UINT32_C(0x7fc00000), UINT32_C(0x7f800000))
WORD_FLOATS(f64, double, 64, UINT64_C(0x7ff8000000000000), UINT64_C(0x7ff0000000000000))

#define ROW_INTEGER(type, bits)                                                                    \
    { [TUTTI_SUM] = sum_##bits, [TUTTI_PROD] = prod_##bits, [TUTTI_MIN] = min_##type,              \
      [TUTTI_MAX] = max_##type,                                                                    \
      [TUTTI_BAND] = band, [TUTTI_BOR] = bor, [TUTTI_BXOR] = bxor }
#define ROW_FLOAT(type)                                                                            \
    { [TUTTI_SUM] = sum_##type, [TUTTI_PROD] = prod_##type, [TUTTI_MIN] = min_##type,              \
      [TUTTI_MAX] = max_##type,                                                                    \
      [TUTTI_AVG] = avg_##type }

enum { TYPES = TUTTI_F64 + 1, OPS = TUTTI_BXOR + 1 };

static fold_word_fn *const words[TYPES][OPS] = {
    [TUTTI_I32] = ROW_INTEGER(int32, 32),
    [TUTTI_U32] = ROW_INTEGER(uint32, 32),
    [TUTTI_I64] = ROW_INTEGER(int64, 64),
    [TUTTI_U64] = ROW_INTEGER(uint64, 64),
    [TUTTI_F32] = ROW_FLOAT(f32),
    [TUTTI_F64] = ROW_FLOAT(f64),
};

fold_word_fn *fold_word(tutti_type type, tutti_op op)
{
    return (unsigned)type < TYPES && (unsigned)op < OPS ? words[type][op] : NULL;
}
