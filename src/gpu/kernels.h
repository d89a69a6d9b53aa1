/* Job: our kernels in one context: loaded when first wanted, kept, launched with a grid that fits.
 * Owns: the modules it has loaded, until kernels_end.
 * Never: makes a context current (the caller has), orders a launch after anything, waits for one.
 *
 * Loading means that the driver compiles, which takes some 10 ms per kernel, once; it keeps the
 * result on disk. Where it cannot compile (no JIT compiler installed, or it is forbidden, or the
 * GPU is older than our text) the answer is -ENOEXEC with words, for good and at once: then take
 * another road. Any thread may call; two that want the same kernel load it once. */
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
/* no launch is under way; its context is current, or gone */
void kernels_end(struct kernels *k, const struct cuda_api *call);

/* 0; -EINVAL: fold/ has no such pair; -ENOEXEC: see above; else what the driver said. Words in *why
 * (may be NULL) but for 0. */
int kernels_get(struct kernels *k, const struct cuda_api *call, tutti_type type, tutti_op op,
                CUfunction *function, struct text *why);

/* Puts the fold into the stream. Its struct is taken at once. As kernels_get, and -EINVAL for more
 * than KERNEL_INPUTS inputs or none. */
int kernels_fold(struct kernels *k, const struct cuda_api *call, tutti_type type, tutti_op op,
                 const struct kernel_fold *fold, CUstream stream, struct text *why);

#endif
