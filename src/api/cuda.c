/* Device memory for the caller: all functions are local, as in memory.c. */
#include "api/memory.h"
#include "gpu/device_memory.h"
#include "os/caller.h"

#include <errno.h>
#include <stdlib.h>
#include <tutti_cuda.h>

/* This rank's number among those of the host, by its launcher; else its rank in the world, which is
 * on one host. */
static int local_rank(const struct world *world)
{
    const char *s = getenv("LOCAL_RANK");
    int64_t value;
    return s && text_parse_int(s, 0, RANKS_MAX, &value) == 0 ? (int)value : world->rank;
}

int tutti_cuda_alloc(void **ptr, size_t bytes, int device, tutti_comm *comm)
{
    CALLER_KEPT;
    char said[512], size[32];
    struct text why = TEXT_IN(said), s = TEXT_IN(size);
    text_clear(&why);
    if (!ptr)
        return -EINVAL;
    *ptr = NULL;
    int r = memory_enter_whole(comm, "cuda_alloc");
    if (r < 0)
        return r;
    if (device < -1) {
        comm_explain(comm, "cuda_alloc: device is %d; expected -1 or the number of a device",
                     device);
        return -EINVAL;
    }
    r = device_memory_alloc(comm->world, bytes, device, local_rank(comm->world), ptr, &why);
    if (r < 0) {
        text_clear(&s);
        text_add_bytes(&s, bytes);
        comm_explain(comm, "cuda_alloc: no %s of device memory: %s", size, said);
    }
    return r;
}

int tutti_cuda_free(void *ptr, tutti_comm *comm)
{
    CALLER_KEPT;
    char said[512];
    struct text why = TEXT_IN(said);
    text_clear(&why);
    int r = memory_enter(comm, "cuda_free");
    if (r < 0)
        return r;
    r = device_memory_free(comm->world, ptr, &why);
    if (r < 0)
        comm_explain(comm, "cuda_free: 0x%zx: %s", (size_t)ptr, said);
    return r;
}
