/* Job:   declare what a kernel of a reduction gets, and what it makes of it.
 * Owns:  nothing.
 * Never: chooses a kernel (fold.h). */
#ifndef FOLD_SIGNATURE_H
#define FOLD_SIGNATURE_H

#include <stddef.h>

/* Folds n >= 1 contributions of count elements, element by element, in the order 0..n-1: ((src[0]
 * op src[1]) op src[2]) op ... dst may be the same address as one of src[]; any other overlap is
 * not allowed. All pointers may have any alignment. divisor >= 1: the number of ranks, used by
 * TUTTI_AVG only.
 * Halves and 8-bit floats are widened to f32 once and rounded once, to nearest even, after the last
 * contribution. So the fold of a part is never folded again. TUTTI_F8E4M3 has no infinities: a
 * value beyond 464 becomes its NaN.
 * A complex product is (ac - bd) + (ad + bc)i; each of the six operations is rounded by itself.
 * Every NaN is written as the one positive quiet NaN of its type, also as a part of a complex
 * number. */
typedef void fold_fn(void *dst, const void *const src[], int n, size_t count, int divisor);

/* TUTTI_PREMUL_SUM: (src[0] * *factor[0]) + (src[1] * *factor[1]) + ..., from the left. Products
 * and sums have the type in which a sum is accumulated; each is rounded by itself; integers wrap.
 * factor[r] is one element at any alignment, and not in dst. */
typedef void fold_scaled_fn(void *dst, const void *const src[], const void *const factor[], int n,
                            size_t count);

#endif
