/* Job: our kernels against the CPU's folds, bit for bit, on whichever driver `cu` is.
 * Owns: its buffers, between folds_begin and folds_end.
 * Never: asks which driver that is. Each returns 0, or 1: it has been said which kernel, and where. */
#ifndef TUTTI_TEST_GPU_FOLDS_H
#define TUTTI_TEST_GPU_FOLDS_H

#include "gpu/cuda_api.h"

#include <stdbool.h>
#include <tutti.h>

int folds_begin(CUstream stream);                    /* a context is current */
int folds_end(void);

/* Every operation of these types: 1 to 64 contributions, aligned and not, in place; 22 turns have all of it. */
int folds_every_pair(tutti_type from, tutti_type to, int turns);
int folds_bytes(void);                               /* every pair of 8-bit floats */
int folds_halves(void);                              /* every 16-bit float against the special ones */

bool folds_exist(int type, int op);
const char *folds_name(tutti_type type, tutti_op op);        /* the kernel's; overwritten by the next */

#endif
