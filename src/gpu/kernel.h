/* Job: how our kernels are called: one shape for all, their names, what they promise.
 * Owns: nothing.
 * Never: PTX text, a launch. Whoever writes a kernel, and the tests' driver that runs it as C, agree here.
 *
 *     .entry NAME (.param .align 8 .b8 buffers[264], .param .u64 count)
 *
 * kernelParams is { &buffers, &count }. Element i of every output becomes in[0][i] o in[1][i] o ... o in[inputs - 1][i], from
 * left to right, which is the order and so the rounding of the CPU's fold. A grid of any size does it (each thread strides over
 * the elements); an output may be one of the inputs; outputs do not overlap otherwise. No kernel waits for another. */
#ifndef TUTTI_GPU_KERNEL_H
#define TUTTI_GPU_KERNEL_H

#include "gpu/cuda_api.h"

enum { KERNEL_BUFFERS = 16 };                        /* more ranks: several launches, the result so far as the first input */

struct kernel_buffers {
    CUdeviceptr in[KERNEL_BUFFERS], out[KERNEL_BUFFERS];
    uint32_t inputs, outputs;                        /* each at least 1 */
};

_Static_assert(sizeof(struct kernel_buffers) == 264, "as the .param line says");

#define KERNEL_FOLD_F32_SUM "tutti_fold_f32_sum"     /* count: floats; addresses are multiples of 4 */
#define KERNEL_COPY "tutti_copy"                     /* inputs is 1; count: bytes, any address */

#endif
