/* Job: find out whether a call's memory is device memory: a struct device_call describes it, or the
 *      call is refused with the reason.
 * Owns: nothing.
 * Never: touches contexts, makes copies (gpu/). Without a CUDA driver in the process it makes one
 *        check only, and none for memory that is never device memory. */
#ifndef TUTTI_API_DEVICE_H
#define TUTTI_API_DEVICE_H

#include "gpu/device.h"
#include "group/comm.h"

/* Checks all buffers of a collective. 0; c->gpu.call is set if any is device memory (road_ways.end
 * frees it). Negative: refused, nothing is held. */
int device_check(struct tutti_comm *comm, struct coll *c, enum kind kind, uint32_t site,
                 const tutti_call *call, struct device_call *d);

int device_refuse_asked(struct tutti_comm *comm, enum kind kind, uint32_t site, const char *what,
                        const void *at, size_t bytes);

/* True: in the arena or among the program's variables, so host memory for as long as the world
   lasts. */
static inline bool device_host_fixed(const struct world *world, const void *at)
{
    return host_memory_fixed(&world->host_memory, (uintptr_t)at)
        || (uintptr_t)at - (uintptr_t)world->arena.base < world->arena.bytes;
}

/* True: the arena, the program's own memory, or NULL: host memory without asking the driver. */
static inline bool device_host_known(const struct world *world, const void *at)
{
    return !at || device_host_fixed(world, at)
        || host_memory_heap(&world->host_memory, (uintptr_t)at);
}

/* For functions that take host memory only: 0, or refused because this is device memory. */
static inline int device_refuse(struct tutti_comm *comm, enum kind kind, uint32_t site,
                                const char *what, const void *at, size_t bytes)
{
    return !bytes || device_host_known(comm->world, at) || !driver_loaded()
        ? 0
        : device_refuse_asked(comm, kind, site, what, at, bytes);
}

/* True: the driver must be asked about the buffers of a call. The first byte decides, as it does
 * for the driver. Lists: always. */
static inline bool device_suspected(const struct tutti_comm *comm, const struct coll *c,
                                    const tutti_call *call)
{
    bool known = !c->lists.n && device_host_known(comm->world, c->send)
        && device_host_known(comm->world, c->recv);
    return (call && call->stream) || (!known && driver_loaded());
}

#endif
