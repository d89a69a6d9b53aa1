/* Job: allocate device memory for the caller and register the caller's own. Peers keep both open
 *      until they are freed or unregistered.
 * Owns: the allocations; ipc_export.h has their list.
 * Never: checks arguments that are not about devices; reports (api/cuda). */
#ifndef TUTTI_GPU_DEVICE_MEMORY_H
#define TUTTI_GPU_DEVICE_MEMORY_H

#include "gpu/driver.h"
#include "group/comm.h"

/* On this device. -1: on that of the calling thread's current context, or else on device
 * `otherwise` modulo their number. 0 or -errno (*why). */
int device_memory_alloc(struct world *world, size_t bytes, int device, int otherwise, void **ptr,
                        struct text *why);
/* 0: it is freed, or will be when the last peer has closed it. -EINVAL: not of device_memory_alloc,
 * or freed before. Waits up to a second for peers. */
int  device_memory_free(struct world *world, void *ptr, struct text *why);

/* The same without a wait: what a peer has open is freed by a later call. */
void device_memory_free_later(struct world *world, void *ptr);

/* 1: ptr is device memory, and *pointer describes it. 0: it is not. -errno. */
int  device_memory_is_device(const void *ptr, struct driver_pointer *pointer, struct text *why);
int device_memory_register(struct world *world, const struct driver_pointer *pointer, size_t bytes,
                           struct text *why);
bool device_memory_is_registered(struct world *world, const void *ptr);
/* 0, -EBUSY, -EINVAL. */
int  device_memory_unregister(struct world *world, void *ptr, struct text *why);

/* Around the moment at which a world is left. leave, before it: closes what this rank has open of
   peers; where only a comm is freed, not the staging of other comms. close, after it: calls its own
   memory back, waits at most a second, and frees what nobody has open. Both do nothing if no
   device memory was ever shared. */
void device_memory_leave(struct world *world, bool staging);
void device_memory_close(struct world *world);

#endif
