/* Job: our kernels against the CPU's folds, bit for bit, on whichever driver `cu` is.
 * Owns: its buffers, between kernel_check_begin and kernel_check_end.
 * Never: asks which driver that is. Each returns 0, or 1: it has been said which kernel,
 *        and where. */
#ifndef TUTTI_TEST_GPU_KERNEL_CHECK_H
#define TUTTI_TEST_GPU_KERNEL_CHECK_H

#include "gpu/cuda_api.h"

#include <stdbool.h>
#include <tutti.h>

int kernel_check_begin(CUstream stream);                    /* a context is current */
int kernel_check_end(void);

/* Every operation of these types: 1 to 64 contributions, aligned and not, in place; 22 turns have
 * all of it. */
int kernel_check_every_pair(tutti_type from, tutti_type to, int turns);
int kernel_check_bytes(void);                     /* every pair of 8-bit floats */
int kernel_check_halves(void);                    /* every 16-bit float against the special ones */

bool kernel_check_exist(int type, int op);
/* the kernel's; overwritten by the next */
const char *kernel_check_name(tutti_type type, tutti_op op);

#endif
