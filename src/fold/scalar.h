/* Job:   fold one element, a word of 4 or 8 bytes, in registers: a loss, a flag, a count.
 * Owns:  nothing.
 * Never: gives other bits than the kernels of fold.h; sets floating-point control (the caller
 *        does).
 *
 * The kernels of fold.h walk over memory. For a single element that takes a hundred instructions,
 * of which one computes. */
#ifndef FOLD_WORD_H
#define FOLD_WORD_H

#include <stdint.h>
#include <tutti.h>

/* acc op next; the elements are in the low bytes. divisor: 0 while more elements are to come; with
 * the last one, the number of all. */
typedef uint64_t fold_word_fn(uint64_t acc, uint64_t next, unsigned divisor);

/* NULL: the pair is not allowed, or not common enough to have one. */
fold_word_fn *fold_word(tutti_type type, tutti_op op);

#endif
