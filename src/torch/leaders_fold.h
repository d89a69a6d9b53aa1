/* Job: fold what the leaders have got from each other, in the order of hosts.
 * Owns: nothing.
 * Never: waits. */
#ifndef TORCH_LEADERS_FOLD_H
#define TORCH_LEADERS_FOLD_H

#include <stddef.h>

#include <vector>

#include "tutti.h"

namespace tutti {

size_t type_size(tutti_type);

/* out[count] becomes the fold of parts[0][count], parts[1][count] …; out may be one of them. The
 * rules are the library's: small floats are added in f32 and rounded once, a NaN wins.
 * weights: of AVG, the ranks that each part is the mean of; else not looked at. */
void fold_parts(void *out, const std::vector<const void *> &parts, size_t count, tutti_type,
                tutti_op, const std::vector<int> &weights);

/* Integers of a narrow type to 64 bits and back: the mean of integers is of sums of 64 bits. */
void widen(void *out, const void *in, size_t count, tutti_type);
/* divides by so many, truncates */
void narrow(void *out, const void *in, size_t count, tutti_type, int divisor);

}

#endif
