/* Job:   declare what each instruction set gives to fold.c: a table of kernels, type by operation.
 * Owns:  nothing; the tables are constants.
 * Never: chooses a set (fold.c). */
#ifndef FOLD_TABLE_H
#define FOLD_TABLE_H

#include "fold/signature.h"

#include <tutti.h>

enum { TABLE_TYPES = TUTTI_F8E5M2 + 1, TABLE_OPS = TUTTI_LXOR + 1 };

/* NULL: the pair is not allowed, or the build's target lacks the instruction set and the whole
 * table is empty. */
struct table {
    const char     *isa;
    fold_fn        *fn[TABLE_TYPES][TABLE_OPS];
    fold_scaled_fn *scaled[TABLE_TYPES]; /* TUTTI_PREMUL_SUM */
};

extern const struct table table_plain;
extern const struct table table_avx2;
extern const struct table table_avx512;
extern const struct table table_neon;

#endif
