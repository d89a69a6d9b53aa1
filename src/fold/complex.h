/* Job:   multiply complex numbers in one vector register: parts stand in pairs, the real one first.
 * Owns:  nothing.
 * Never: adds them: a sum is the sum of the parts.
 *
 * The including file has included vector.h and written, for bits 32 and 64,
 *        pair_even_<bits>, pair_odd_<bits>   each pair has its first, its second part twice
 *        pair_swap_<bits>                    each pair has its parts exchanged
 *
 * (a + bi)(c + di) = (ac - bd) + (ad + bc)i, each operation rounded by itself. ac + (-bd) is
 * ac - bd, so the sign of bd is inverted, and one addition serves both parts. Infinities are not
 * treated as in C's Annex G: a NaN stays a NaN. */
#ifndef FOLD_PAIRS_H
#define FOLD_PAIRS_H

#include "fold/vector.h"

static const uint32_t complex_minus_32[16] = {1u << 31, 0, 1u << 31, 0, 1u << 31, 0, 1u << 31, 0,
                                            1u << 31, 0, 1u << 31, 0, 1u << 31, 0, 1u << 31, 0};
static const uint64_t complex_minus_64[8] = {
    UINT64_C(1) << 63, 0, UINT64_C(1) << 63, 0, UINT64_C(1) << 63, 0, UINT64_C(1) << 63, 0
};

#define PAIRS_PROD(complex, part, bits) \
    static inline vec complex_prod_##complex(vec ab, vec cd) \
    { \
        vec straight = vector_prod_##part(pair_even_##bits(ab), cd); \
        vec crossed = vector_prod_##part(pair_odd_##bits(ab), pair_swap_##bits(cd)); \
        return vector_sum_##part(straight, \
                                 crossed ^ vector_load((const uint8_t *)complex_minus_##bits)); \
    }

/* clang-format off */
PAIRS_PROD(c64, f32, 32)
PAIRS_PROD(c128, f64, 64)
/* clang-format on */

#endif
