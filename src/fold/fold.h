/* Job:   the arithmetic of reductions: one kernel per type and operation, for each instruction set,
 *        all agreeing bit for bit.
 * Owns:  no shared word; a kernel reads src[] and writes dst, nothing else.
 * Never: ranks, arenas, waiting; of the environment TUTTI_ISA alone. Floating-point control is the
 *        caller's: round to nearest, no flush to zero. */
#ifndef FOLD_FOLD_H
#define FOLD_FOLD_H

#include "fold/signature.h"

#include <stddef.h>
#include <tutti.h>

/* The best kernel of this machine. NULL when the pair is not allowed; then *why is a sentence with
 * the remedy, which lives for ever, and otherwise NULL. why itself may be NULL. A few loads: cheap
 * enough to ask before every operation. TUTTI_PREMUL_SUM needs factors: fold_find has none of its
 * kernels, fold_find_scaled no others. From TUTTI_OP_USER on: NULL. */
fold_fn        *fold_find(tutti_type type, tutti_op op, const char **why);
fold_scaled_fn *fold_find_scaled(tutti_type type, const char **why);

/* The kernel of one instruction set, "plain", "avx2", "avx512" or "neon"; NULL if the pair is not
 * allowed, or if this machine or build lacks the set. */
fold_fn        *fold_find_isa(const char *isa, tutti_type type, tutti_op op);
fold_scaled_fn *fold_find_scaled_isa(const char *isa, tutti_type type);

/* The instruction set that fold_find takes its kernels from. */
const char *fold_isa(void);

size_t      fold_type_size(tutti_type type); /* bytes of one element; 0: no such type */
const char *fold_type_name(tutti_type type); /* "f32"; "?": no such type */
/* "sum"; "user" from TUTTI_OP_USER on; "?": no such operation */
const char *fold_op_name(tutti_op op);

#endif
