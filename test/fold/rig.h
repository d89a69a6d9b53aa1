/* Runs kernels the ways a collective may: short and long, unaligned, in place of any contribution;
 * in every instruction set that this machine has. All results must be the expected bytes, and
 * nothing beside dst may change. */
#ifndef TEST_FOLD_RIG_H
#define TEST_FOLD_RIG_H

#include "fold/fold.h"

enum { RIG_RANKS = 40 };

struct rig {
    tutti_type     type;
    tutti_op       op;
    int            n, divisor;
    size_t         count; /* elements at most */
    const uint8_t *source[RIG_RANKS];
    const uint8_t *factor[RIG_RANKS]; /* one element each; TUTTI_PREMUL_SUM only */
    const uint8_t *expected;
};

/* All of `count` at once, and then every count of a list below it, aligned, unaligned and
 * in place. */
void rig_all(const struct rig *rig);
void rig_short(const struct rig *rig);

/* rig_short of `count` random elements (of at most 16 bytes) per contribution, against
 * the model. */
void rig_random(tutti_type type, tutti_op op, int n, int divisor, size_t count);

#endif
