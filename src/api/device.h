/* Job: is a call's memory a device's? Then what it is, in a struct device_call, or why the
 *      call is refused.
 * Owns: nothing.
 * Never: contexts, copies (gpu/). Where the process has no CUDA driver, no more than one question,
 *        and none about memory that cannot be
 * a device's whoever has a driver. */
#ifndef TUTTI_API_DEVICE_H
#define TUTTI_API_DEVICE_H

#include "gpu/device.h"
#include "group/comm.h"

/* All of a collective's buffers. 0, with c->gpu.call set (road_ways.end lets go of it) if any is a
 * device's. Negative: refused, nothing is held. */
int device_check(struct tutti_comm *comm, struct coll *c, enum kind kind, uint32_t site,
                 const tutti_call *call, struct device_call *d);

int device_refuse_asked(struct tutti_comm *comm, enum kind kind, uint32_t site, const char *what,
                        const void *at, size_t bytes);

/* The arena's, the program's own: for as long as the world lasts. */
static inline bool device_host_fixed(const struct world *world, const void *at)
{
    return host_memory_fixed(&world->host_memory, (uintptr_t)at)
        || (uintptr_t)at - (uintptr_t)world->arena.base < world->arena.bytes;
}

/* The arena's, the program's own, or none at all: known without a question. */
static inline bool device_host_known(const struct world *world, const void *at)
{
    return !at || device_host_fixed(world, at)
        || host_memory_heap(&world->host_memory, (uintptr_t)at);
}

/* For functions that take host memory only: 0, or refused because this is not. */
static inline int device_refuse(struct tutti_comm *comm, enum kind kind, uint32_t site,
                                const char *what, const void *at, size_t bytes)
{
    return !bytes || device_host_known(comm->world, at) || !driver_loaded()
        ? 0
        : device_refuse_asked(comm, kind, site, what, at, bytes);
}

/* Is it worth asking whose memory the buffers of a call are? The first byte tells, as it tells the
 * driver. Lists: always. */
static inline bool device_suspected(const struct tutti_comm *comm, const struct coll *c,
                                    const tutti_call *call)
{
    bool known = !c->lists.n && device_host_known(comm->world, c->send)
        && device_host_known(comm->world, c->recv);
    return (call && call->stream) || (!known && driver_loaded());
}

#endif
