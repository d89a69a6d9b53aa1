/* Job: what the tests' libcuda.so.1 can do beyond CUDA, for tests; found by dlsym.
 * Owns: nothing.
 * Never: called by the code under test. */
#ifndef TUTTI_TEST_GPU_HOOKS_H
#define TUTTI_TEST_GPU_HOOKS_H

#include "gpu/cuda_api.h"

enum { FAKE_MISUSE_STATUS = 86 };                   /* exit status of a process that misused CUDA */

/* What copies of one kind had to do since the last look: how many, bytes, and where on the host
 * they began and ended. */
struct fake_copied { uint64_t copies, bytes; const char *from, *to; };

#define FAKE_HOOKS(X) \
    /* 1: the stream takes up no more work, until 0 */ \
    X(void, fakeHold, (CUstream stream, int hold)) \
    /* 1: the program's kernels fill the device, so that no kernel of a stream of normal priority
     * begins, until 0 */ \
    X(void, fakeCrowd, (int crowd)) \
    X(unsigned, fakeGrid, (void))       /* the most blocks of a launch since it was last asked */ \
    /* our kernels since it was last asked that have an address which is no multiple of 16 */ \
    X(unsigned, fakeUnaligned, (void)) \
    X(uint64_t, fakeCalls, (void))              /* how many calls this process has made so far */ \
    /* how many of them of this one, by the name it is looked up by */ \
    X(uint64_t, fakeCallsOf, (const char *symbol)) \
    /* since it was last asked; by the symbol's whole name */ \
    X(struct fake_copied, fakeCopied, (const char *symbol)) \
    X(int, fakeMisuses, (void)) /* found so far; more than 0 only under FAKE_CUDA_MISUSE=report */ \
    /* the CPU is about to touch this: is a copy under way there? */ \
    X(int, fakeHostAccess, (const void *at, size_t bytes, int write)) \
    X(void, fakeCapture, (CUstream stream, int status))   /* what cuStreamIsCapturing is to say */ \
    /* where the CPU sees that byte; NULL: no memory there */ \
    X(void *, fakePeek, (CUdeviceptr at))

/* Functions of CUDA's that only programs call, and tests as programs. */
#define CUDA_MORE(X) \
    X(cuStreamBeginCapture_v2, (CUstream stream, int mode)) \
    X(cuStreamEndCapture, (CUstream stream, void **graph)) \
    X(cuCtxCreate_v2, (CUcontext *context, unsigned flags, CUdevice device)) \
    X(cuCtxDestroy_v2, (CUcontext context))

#define CUDA_MORE_FIELD_(symbol, parameters) CUresult (*symbol) parameters;
struct cuda_more { CUDA_MORE(CUDA_MORE_FIELD_) };
#undef CUDA_MORE_FIELD_

#define FAKE_HOOK_FIELD_(type, name, parameters) type (*name) parameters;
struct fake_hooks { FAKE_HOOKS(FAKE_HOOK_FIELD_) };
#undef FAKE_HOOK_FIELD_

#endif
