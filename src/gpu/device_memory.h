/* Job: device memory that tutti makes for its caller, and the caller's that was registered: kept
 *      open at peers until it is let go.
 * Owns: the allocations; the list of them is share's.
 * Never: arguments that are not about devices, reports (api/cuda). */
#ifndef TUTTI_GPU_DEVICE_MEMORY_H
#define TUTTI_GPU_DEVICE_MEMORY_H

#include "gpu/driver.h"
#include "group/comm.h"

/* On this device; -1: of the calling thread's current context, or `otherwise` modulo the devices
 * there are. 0 or -errno (*why). */
int device_memory_alloc(struct world *world, size_t bytes, int device, int otherwise, void **ptr,
                        struct text *why);
/* 0: freed, or as soon as the last peer has closed it. -EINVAL: not of device_memory_alloc, or
 * freed before. Waits up to a second for peers. */
int  device_memory_free(struct world *world, void *ptr, struct text *why);

/* Is ptr a device's? Then 1, and *pointer; 0 not; -errno. */
int  device_memory_is_device(const void *ptr, struct driver_pointer *pointer, struct text *why);
int device_memory_register(struct world *world, const struct driver_pointer *pointer, size_t bytes,
                           struct text *why);
bool device_memory_is_registered(struct world *world, const void *ptr);
/* 0, -EBUSY, -EINVAL */
int  device_memory_unregister(struct world *world, void *ptr, struct text *why);

/* Around the moment at which a world is left: before, what it has open of peers is closed; after,
   its own memory is called back, waited for at most a second, and freed as far as nobody has it
   open. Nothing where no device memory was ever shared. */
void device_memory_leave(struct world *world);
void device_memory_close(struct world *world);

#endif
