/* Job:   one element that is a word of 4 or 8 bytes, folded in registers: a loss, a flag, a count.
 *        The kernels of fold.h walk over memory; for a single element that is a hundred
 *        instructions of which one computes.
 * Owns:  nothing.
 * Never: other bits than those kernels give; floating-point control is the caller's, as theirs. */
#ifndef FOLD_WORD_H
#define FOLD_WORD_H

#include <stdint.h>
#include <tutti.h>

/* acc op next, the elements in the low bytes of each. divisor: 0 as long as more are to come; with
 * the last, how many there are. */
typedef uint64_t fold_word_fn(uint64_t acc, uint64_t next, unsigned divisor);

/* NULL: the pair is not allowed, or not common enough to have one. */
fold_word_fn *fold_word(tutti_type type, tutti_op op);

#endif
