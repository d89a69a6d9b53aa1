/* A handle is asked for once for each buffer: to export a descriptor takes 0.6 to 0.8 ms. */
#include "gpu/lent_handle.h"

#include <string.h>

static void export(struct lent_handle *h, const struct cuda_api *call,
                   const struct driver_pointer *p, struct text *words)
{
    CUmemGenericAllocationHandle memory;
    CUresult error = call->cuMemRetainAllocationHandle(&memory, (void *)(uintptr_t)p->base);
    if (error) {
        driver_failed(call, "cuMemRetainAllocationHandle", error, words);
        return;
    }
    int fd = -1;
    error = call->cuMemExportToShareableHandle(&fd, memory,
                                               CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    call->cuMemRelease(memory);
    if (error)
        driver_failed(call, "cuMemExportToShareableHandle", error, words);
    else {
        h->file = kept_of(fd);
        h->how = LENT_DESCRIPTOR;
    }
}

int lent_handle_of(struct lent_handle *h, const struct cuda_api *call,
                   const struct driver_pointer *p, struct text *why)
{
    CUuuid uuid;
    CUdevice device;
    CUipcMemHandle handle;
    CUresult error = call->cuDeviceGet(&device, p->device);
    if (!error)
        error = call->cuDeviceGetUuid_v2(&uuid, device);
    if (error)
        return driver_failed(call, "cuDeviceGetUuid", error, why);
    *h = (struct lent_handle){ .how = LENT_NOT, .file = KEPT_NONE };
    memcpy(h->device, uuid.bytes, sizeof h->device);
    struct text words = TEXT_IN(h->words);
    text_clear(&words);
    if (!p->ipc && p->descriptor)
        export(h, call, p, &words);
    else if (!p->ipc)
        text_add(&words, "it is memory that other processes cannot open");
    else if ((error = call->cuIpcGetMemHandle(&handle, p->base)) != 0)
        driver_failed(call, "cuIpcGetMemHandle", error, &words);
    else {
        memcpy(h->legacy, handle.reserved, sizeof h->legacy);
        h->how = LENT_LEGACY;
    }
    return 0;
}

void lent_handle_end(struct lent_handle *h)
{
    if (h->how == LENT_DESCRIPTOR)
        kept_close(&h->file);
    h->how = LENT_NOT;
}
