/* tutti: device memory. What a program may use beside tutti.h where it has GPUs of CUDA; it needs none of CUDA's headers.
 *
 * Every collective of tutti.h takes device pointers (of cuMemAlloc, cuMemCreate, their pools, managed memory), of one device in a call, and any mix of
 * ranks with device and with host buffers. tutti_call.stream orders the call behind what is in that stream (NULL: the legacy default stream);
 * when the call has returned, the result is in place. Results have the same bits as those of host buffers.
 *
 * Peers can read device memory where it lies, where the system lets them (CUDA IPC). To open a peer's memory takes up to a
 * millisecond. Memory of tutti_cuda_alloc, and device memory of tutti_register, stays open from its first operation on; all other is
 * opened for each operation and closed behind it, so that it may be freed at any time. */
#ifndef TUTTI_CUDA_H
#define TUTTI_CUDA_H

#include <tutti.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Device memory of at least that many bytes for this rank, aligned to 256 bytes, in whole 2 MiB; not cleared. *ptr is a device address
 * (a CUdeviceptr) that kernels, streams and libraries use like any other, in the device's primary context. device: an ordinal among those
 * that this process sees; -1: that of the calling thread's current context, and where there is none, LOCAL_RANK modulo their number
 * (without LOCAL_RANK this rank). Local: no other rank takes part; any thread. On failure *ptr is NULL, the reason is in tutti_explain: -ENODEV
 * (no driver, no GPU), -EBUSY (another process has the device for itself: compute mode exclusive), -EINVAL (no such device), -ENOMEM,
 * -ENOTSUP (a fork of a process that used CUDA), -ECANCELED (the comm is broken).
 *     void *x;
 *     if (tutti_cuda_alloc(&x, n * sizeof(float), -1, world) == 0)
 *         tutti_all_reduce(x, x, n, TUTTI_F32, TUTTI_SUM, world, NULL); */
int tutti_cuda_alloc(void **ptr, size_t bytes, int device, tutti_comm *);

/* Gives back what this rank had from tutti_cuda_alloc by any comm of the world, after all work of this process on it. Peers that have it open
 * close it in their next call about device memory; this call waits for them up to a second. Where that is not enough it
 * returns 0 all the same, and the memory is freed by a later call to one of these two, or by tutti_finalize. What a dead rank had open
 * counts for nothing. NULL: 0. -EINVAL: anything else (freed before, memory of another allocator or rank). Works on a broken comm. */
int tutti_cuda_free(void *ptr, tutti_comm *);

#ifdef __cplusplus
}
#endif
#endif
