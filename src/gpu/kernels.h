/* Job: load our kernels into one context; keep them; launch them with a grid that fits.
 * Owns: the modules it has loaded, until kernels_end.
 * Never: makes a context current (the caller has), orders a launch after anything, waits for one.
 *
 * To load a kernel, the driver waits until the device has done all that is under way in the
 * context, and all threads that call CUDA meanwhile wait, too. If one of them is to start what the
 * device waits for, that is a deadlock. So all kernels of the common types (halves, floats,
 * doubles) are loaded at once when the device is first used; the others when they are first wanted.
 *
 * The driver compiles what it loads: some 35 ms per kernel, once. It keeps the result on disk. It
 * may be unable to compile: no JIT compiler is installed, compilation is forbidden, or the GPU is
 * older than our text. Then the answer is -ENOEXEC with words, at once and for good, and the caller
 * takes another road. Any thread may call. Two threads that want the same kernel load it once. */
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
    CUmodule common;
    /* module: NULL for those in `common` */
    struct kernels_one { CUmodule module; CUfunction function; } one[KERNELS_TYPES][KERNELS_OPS];
};

void kernels_begin(struct kernels *k);
/* No launch is under way; the context is current, or gone. */
void kernels_end(struct kernels *k, const struct cuda_api *call);

/* Loads the kernels of the common types. 0, also if the driver has refused them in a manner that
 * harms nothing; they are then asked for one by one. Else what it said, with *why. */
int kernels_ready(struct kernels *k, const struct cuda_api *call, struct text *why);

/* 0. -EINVAL: fold/ has no such pair. -ENOEXEC: see above. Else what the driver said. *why (may be
 * NULL) gets words, except for 0. */
int kernels_get(struct kernels *k, const struct cuda_api *call, tutti_type type, tutti_op op,
                CUfunction *function, struct text *why);

/* Puts the fold into the stream. *fold is copied at once. Results as of kernels_get; -EINVAL also
 * for no inputs or more than KERNEL_INPUTS. */
int kernels_fold(struct kernels *k, const struct cuda_api *call, tutti_type type, tutti_op op,
                 const struct kernel_fold *fold, CUstream stream, struct text *why);

#endif
