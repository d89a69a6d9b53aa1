/* tutti: device memory. What a program may use beside tutti.h where it has GPUs of CUDA.
 *
 * This header needs none of CUDA's headers.
 *
 * Every collective of tutti.h takes device pointers: of cuMemAlloc, cuMemCreate, their pools, and
 * managed memory. One rank's buffers of one call lie on one device. Some ranks may use device
 * buffers and others host buffers. tutti_call.stream orders the call behind what is in that stream
 * (NULL: the legacy default stream). When the call has returned, the result is in place. Results
 * have the same bits as those of host buffers.
 *
 * Peers can read device memory where it lies, where the system lets them (CUDA IPC). To open a
 * peer's memory takes up to a millisecond, and to close it waits for all kernels of the process.
 * So a collective opens what it has not opened before, and closes nothing unless it opens. In a
 * comm's first two collectives with device memory, and in the first with new memory, no kernel of
 * the program may wait for what a rank does later.
 * Memory of tutti_cuda_alloc, and device memory of tutti_register, stays open from its first
 * operation on. All other memory is copied, on the device, to and from a staging of 32 MiB that a
 * comm has there from its first such operation until it is freed. So it may be of any kind, and may
 * be freed at any time. Memory of another context than the device's primary one goes through host
 * memory. */
#ifndef TUTTI_CUDA_H
#define TUTTI_CUDA_H
/* SPDX-License-Identifier: MIT */

#include <tutti.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Allocates device memory for this rank: *ptr.
 *
 * *ptr is a device address (a CUdeviceptr) in the device's primary context. Kernels, streams and
 * libraries use it like any other. There are at least `bytes` bytes, in whole 2 MiB, aligned to 256
 * bytes and not cleared. device: an ordinal among those that this process sees. -1: the device of
 * the calling thread's current context; where there is none, LOCAL_RANK modulo the number of
 * devices (without LOCAL_RANK this rank). Local: no other rank takes part. Any thread.
 *
 * Errors; *ptr is NULL, and the reason is in tutti_explain:
 *     -ENODEV     no driver, no GPU
 *     -EBUSY      another process has the device for itself (compute mode exclusive)
 *     -EINVAL     no such device
 *     -ENOMEM
 *     -ENOTSUP    a fork of a process that used CUDA
 *     -ECANCELED  the comm is broken
 * Example:
 *     void *x;
 *     if (tutti_cuda_alloc(&x, n * sizeof(float), -1, world) == 0)
 *         tutti_all_reduce(x, x, n, TUTTI_F32, TUTTI_SUM, world, NULL); */
int tutti_cuda_alloc(void **ptr, size_t bytes, int device, tutti_comm *);

/* Gives back what this rank had from tutti_cuda_alloc by any comm of the world.
 *
 * It is freed after all work of this process on it, and after the peers that have it open have
 * closed it. To close it, CUDA waits for all work of that peer on the device. So no collective
 * closes it and no wait. A peer closes it in its next tutti_cuda_alloc, tutti_cuda_free,
 * tutti_register or tutti_unregister of device memory, in tutti_finalize, or when it opens other
 * memory. Best free at the same place of the program on all ranks. A rank that has nothing to free
 * there passes NULL.
 *
 * This call waits for peers up to 50 ms. If that is not enough, it returns 0 all the same. A later
 * call of one of these, or tutti_finalize, frees the memory then. What a dead rank had open counts
 * for nothing. ptr NULL: 0. Works on a broken comm.
 *
 * Peers keep memory of tutti_register open in the same way. tutti_unregister waits up to a second,
 * and then gives -EBUSY: it stays registered, and is not to be freed yet. What cuMemCreate made for
 * POSIX file descriptors, peers close at once, also while they wait.
 *
 * Errors: -EINVAL  anything else: freed before, memory of another allocator or rank */
int tutti_cuda_free(void *ptr, tutti_comm *);

#ifdef __cplusplus
}
#endif
#endif
