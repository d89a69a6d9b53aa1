/* Job: define how our kernels are called: one shape for all, their names, what they guarantee.
 * Owns: nothing.
 * Never: writes PTX text (ptx.h); launches (kernels.h).
 *
 * The writer of a kernel and the tests' driver that runs it keep to this:
 *
 *     .entry tutti_fold_TYPE_OPERATION (.param .align 8 .b8 call[1560])
 *
 * kernelParams is { &call }. Names are those of fold_type_name and fold_op_name:
 * tutti_fold_f32_sum, tutti_fold_i8_premul_sum. Each has a module of its own. Element i of out
 * becomes in[0][i] o in[1][i] o ... o in[inputs - 1][i], from left to right, bit for bit as the
 * CPU's fold (fold/fold.h) would make it, TUTTI_PREMUL_SUM and TUTTI_AVG included.
 *
 * Grid and block may be of any size, in one dimension. out may be one of the in[]; other overlaps
 * are not allowed. An address need only be a multiple of the element's size (of a part's, for
 * complex numbers), but where out and all in[] are multiples of KERNEL_ALIGNED a kernel is several
 * times faster. It reads and writes count elements and no byte more. No kernel waits for another.
 *
 * More inputs than KERNEL_INPUTS cannot be folded by two launches: halves, 8-bit floats and
 * averages are rounded once. */
#ifndef TUTTI_GPU_KERNEL_H
#define TUTTI_GPU_KERNEL_H

#include "gpu/cuda_api.h"

#include <stdint.h>

enum { KERNEL_INPUTS = 64, KERNEL_ALIGNED = 16 };

struct kernel_fold {
    CUdeviceptr out;
    uint64_t count;                                  /* of elements */
    /* 1 to KERNEL_INPUTS; the number of ranks for TUTTI_AVG, else unused */
    uint32_t inputs, divisor;
    CUdeviceptr in[KERNEL_INPUTS];
    /* one element, in its first bytes, for TUTTI_PREMUL_SUM, else unused */
    uint64_t factor[KERNEL_INPUTS][2];
};

enum {                                               /* offsets of the fields, for the text */
    KERNEL_AT_OUT = 0, KERNEL_AT_COUNT = 8, KERNEL_AT_INPUTS = 16, KERNEL_AT_DIVISOR = 20,
    KERNEL_AT_IN = 24, KERNEL_AT_FACTOR = KERNEL_AT_IN + 8 * KERNEL_INPUTS,
    KERNEL_BYTES = KERNEL_AT_FACTOR + 16 * KERNEL_INPUTS,
};

_Static_assert(sizeof(struct kernel_fold) == KERNEL_BYTES && KERNEL_BYTES == 1560,
               "as the .param line says, and under 4 KiB");
_Static_assert(offsetof(struct kernel_fold, in) == KERNEL_AT_IN
                   && offsetof(struct kernel_fold, factor) == KERNEL_AT_FACTOR
                   && offsetof(struct kernel_fold, divisor) == KERNEL_AT_DIVISOR,
               "as the text reads it");

#define KERNEL_FOLD_PREFIX "tutti_fold_"

#endif
