/* Job:   the arithmetic of reductions: one kernel per type and operation, for each instruction set, all agreeing bit for bit.
 * Owns:  no shared word; a kernel reads src[] and writes dst, nothing else.
 * Never: ranks, arenas, waiting; of the environment TUTTI_ISA alone. Floating-point control is the caller's: round to nearest, no flush to zero. */
#ifndef FOLD_FOLD_H
#define FOLD_FOLD_H

#include <stddef.h>
#include <tutti.h>

/* Folds n >= 1 contributions of count elements, element by element, in the order 0..n-1: ((src[0] op src[1]) op src[2]) op ...
 * dst may be the same address as one of src[]; any other overlap is not allowed. All pointers may have any alignment.
 * divisor >= 1: the number of ranks, used by TUTTI_AVG only.
 * Halves and 8-bit floats are widened to f32 once and rounded once, to nearest even, after the last contribution; the fold of a
 * part is therefore never folded again. TUTTI_F8E4M3 has no infinities: what is beyond 464 becomes its NaN.
 * A complex product is (ac - bd) + (ad + bc)i, each of the six operations rounded by itself.
 * Every NaN, and every part of a complex number that is one, is written as the one positive quiet NaN of its type. */
typedef void fold_fn(void *dst, const void *const src[], int n, size_t count, int divisor);

/* TUTTI_PREMUL_SUM: (src[0] * *factor[0]) + (src[1] * *factor[1]) + ..., from the left. Products and sums are of the type that a
 * sum is accumulated in, rounded each by itself; integers wrap. factor[r] is one element at any alignment, and no part of dst. */
typedef void fold_scaled_fn(void *dst, const void *const src[], const void *const factor[], int n, size_t count);

/* The best kernel of this machine. NULL when the pair is not allowed; then *why is a sentence with the remedy, which lives for
 * ever, and otherwise NULL. why itself may be NULL. A few loads: cheap enough to ask before every operation.
 * TUTTI_PREMUL_SUM needs factors: fold_find has none of its kernels, fold_find_scaled no others. From TUTTI_OP_USER on: NULL. */
fold_fn        *fold_find(tutti_type type, tutti_op op, const char **why);
fold_scaled_fn *fold_find_scaled(tutti_type type, const char **why);

/* The kernel of one instruction set, "plain", "avx2", "avx512" or "neon"; NULL if the pair is not allowed, or if this machine or
 * build lacks the set. */
fold_fn        *fold_find_isa(const char *isa, tutti_type type, tutti_op op);
fold_scaled_fn *fold_find_scaled_isa(const char *isa, tutti_type type);

/* The instruction set that fold_find takes its kernels from. */
const char *fold_isa(void);

size_t      fold_type_size(tutti_type type); /* bytes of one element; 0: no such type */
const char *fold_type_name(tutti_type type); /* "f32"; "?": no such type */
const char *fold_op_name(tutti_op op);       /* "sum"; "user" from TUTTI_OP_USER on; "?": no such operation */

#endif
