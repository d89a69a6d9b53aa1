/* Job: load our kernels into one context when they are first used; keep them; launch them with a
 *      grid that fits.
 * Owns: the modules it has loaded, until kernels_end.
 * Never: makes a context current (the caller has), orders a launch after anything, waits for one.
 *
 * To load a kernel, the driver compiles it: some 10 ms per kernel, once. It keeps the result on
 * disk. It may be unable to compile: no JIT compiler is installed, compilation is forbidden, or the
 * GPU is older than our text. Then the answer is -ENOEXEC with words, at once and for good, and the
 * caller takes another road. Any thread may call. Two threads that want the same kernel load it
 * once. */
#ifndef TUTTI_GPU_KERNELS_H
#define TUTTI_GPU_KERNELS_H

#include "base/text.h"
#include "gpu/kernel.h"

#include <pthread.h>
#include <tutti.h>

enum { KERNELS_TYPES = TUTTI_F8E5M2 + 1, KERNELS_OPS = TUTTI_PREMUL_SUM + 1, KERNELS_WORDS = 256 };

struct kernels {
    pthread_mutex_t lock;                       /* over all that follows */
    int processors;                             /* of the device; 0: not asked yet */
    int refused;                                /* -ENOEXEC: the driver has refused one, and why */
    char why[KERNELS_WORDS];
    struct kernels_one { CUmodule module; CUfunction function; } one[KERNELS_TYPES][KERNELS_OPS];
};

void kernels_begin(struct kernels *k);
/* No launch is under way; the context is current, or gone. */
void kernels_end(struct kernels *k, const struct cuda_api *call);

/* 0. -EINVAL: fold/ has no such pair. -ENOEXEC: see above. Else what the driver said. *why (may be
 * NULL) gets words, except for 0. */
int kernels_get(struct kernels *k, const struct cuda_api *call, tutti_type type, tutti_op op,
                CUfunction *function, struct text *why);

/* Puts the fold into the stream. *fold is copied at once. Results as of kernels_get; -EINVAL also
 * for no inputs or more than KERNEL_INPUTS. */
int kernels_fold(struct kernels *k, const struct cuda_api *call, tutti_type type, tutti_op op,
                 const struct kernel_fold *fold, CUstream stream, struct text *why);

#endif
