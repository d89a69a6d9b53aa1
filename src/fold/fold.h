/* Job:   provide the arithmetic of reductions: one kernel per type and operation, for each
 *        instruction set. All sets agree bit for bit.
 * Owns:  no shared word; a kernel reads src[] and writes dst, nothing else.
 * Never: handles ranks or arenas; waits; reads the environment, except TUTTI_ISA; sets
 *        floating-point control (the caller does: round to nearest, no flush to zero). */
#ifndef FOLD_FOLD_H
#define FOLD_FOLD_H

#include "fold/signature.h"

#include <stddef.h>
#include <tutti.h>

/* The best kernel of this machine. NULL: the pair is not allowed; then *why is a sentence with the
 * remedy, valid for ever. Else *why is NULL. why itself may be NULL. Costs a few loads: cheap
 * enough for every operation. TUTTI_PREMUL_SUM needs factors: only fold_find_scaled has its
 * kernels, and no others. From TUTTI_OP_USER on: NULL. */
fold_fn        *fold_find(tutti_type type, tutti_op op, const char **why);
fold_scaled_fn *fold_find_scaled(tutti_type type, const char **why);

/* The kernel of one instruction set, "plain", "avx2", "avx512" or "neon"; NULL if the pair is not
 * allowed, or if this machine or build lacks the set. */
fold_fn        *fold_find_isa(const char *isa, tutti_type type, tutti_op op);
fold_scaled_fn *fold_find_scaled_isa(const char *isa, tutti_type type);

/* The instruction set of fold_find's kernels. */
const char *fold_isa(void);

size_t      fold_type_size(tutti_type type); /* bytes of one element; 0: no such type */
const char *fold_type_name(tutti_type type); /* "f32"; "?": no such type */
/* "sum"; "user" from TUTTI_OP_USER on; "?": no such operation */
const char *fold_op_name(tutti_op op);

#endif
