/* The memory is that of tutti_cuda_alloc, which peers keep open. A rank that frees its comm closes
 * what it has open for it, and lets its own go: the memory is freed when the last peer has freed
 * the comm, too. Two slots, so that a round is copied in while the one before is folded. A slot is
 * so large because processes that share a GPU take turns by time slices: each stage of a round
 * waits for a turn of all of them, whatever the size. */
#include "gpu/device_slots.h"

#include "gpu/device_memory.h"
#include "gpu/ipc_export.h"
#include "gpu/ipc_import.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int refuse(struct device_slots *slots, int error, const char *words, struct text *why)
{
    slots->refused = strdup(words);
    text_add(why, "%s", words);
    return error;
}

int device_slots_open(struct device_slots *slots, struct tutti_comm *comm, const struct gpu *gpu,
                      struct text *why)
{
    char words[400];
    struct text said = TEXT_IN(words);
    void *at = NULL;
    if (slots->at)
        return 0;
    if (slots->refused) {
        text_add(why, "%s", slots->refused);
        return -ENOMEM;
    }
    text_clear(&said);
    text_add(&said, "no staging on the device: ");
    int r = device_memory_alloc(comm->world, (size_t)DEVICE_SLOTS * DEVICE_SLOT_BYTES,
                                gpu_ordinal(gpu), 0, &at, &said);
    if (r < 0)
        return refuse(slots, r, words, why);
    r = driver_pointer(at, &slots->pointer, &said);
    if (r == 0 && slots->pointer.memory != DRIVER_DEVICE) {
        text_add(&said, "the driver does not know it");
        r = -EIO;
    }
    if (r < 0) {
        device_memory_free_later(comm->world, at);
        return refuse(slots, r, words, why);
    }
    slots->at = at;
    return 0;
}

int device_slots_opened(struct device_slots *slots, const struct tutti_comm *comm, uint32_t p,
                        uint64_t buffer)
{
    if (!slots->opened)
        slots->opened = calloc(comm->watch.size, sizeof *slots->opened);
    if (!slots->opened)
        return -ENOMEM;
    slots->opened[p] = buffer;
    return 0;
}

void device_slots_close(struct device_slots *slots, struct tutti_comm *comm)
{
    struct ipc_export *share = ipc_export_if(comm->world);
    for (uint32_t p = 0; slots->opened && share && p < comm->watch.size; p++)
        if (slots->opened[p])
            ipc_import_close(ipc_export_handles(share), watch_world_rank(&comm->watch, p),
                             slots->opened[p]);
    if (slots->at)
        device_memory_free_later(comm->world, slots->at);
    free(slots->opened);
    free(slots->refused);
    *slots = (struct device_slots){ .at = NULL };
}
