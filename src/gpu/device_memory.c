/* Allocations come from cuMemAlloc, in the device's primary context, which the CUDA runtime and all
 * libraries use. Their sizes are multiples of 2 MiB: the driver shares its blocks, which have that
 * size, as a whole, and a block that a peer can reach should have only our memory in it. Each
 * allocation holds a reference to the primary context, so the context outlives all other
 * releases.
 *
 * Who frees or unregisters first closes all of the peers' memory that it has open and does not use.
 * All ranks do so at the same place of the program. So the last one to come finds its memory closed
 * by those who have gone on. What is needed again is opened again. */
#include "gpu/device_memory.h"

#include "gpu/calm.h"
#include "gpu/ipc_import.h"
#include "gpu/ipc_export.h"

#include <errno.h>

#define BLOCK ((size_t)2 << 20)
/* How long they wait for peers. Then free leaves the rest to a later call; unregister fails. */
#define FREE_PATIENCE_NS UINT64_C(50000000)
#define PATIENCE_NS UINT64_C(1000000000)

static int choose_device(const struct driver *driver, int device, int otherwise, struct text *why)
{
    CUcontext current = NULL;
    CUdevice d = 0;
    if (device >= driver->devices) {
        text_add(why, "there is no device %d: this process sees %d", device, driver->devices);
        return -EINVAL;
    }
    if (device >= 0)
        return device;
    if (driver->call.cuCtxGetCurrent(&current) == CUDA_SUCCESS && current
        && driver->call.cuCtxGetDevice(&d) == CUDA_SUCCESS)
        return d;
    return otherwise % driver->devices;
}

/* Retains the device's primary context and makes it current. */
static int enter_device(const struct cuda_api *call, int device, CUdevice *d, struct text *why)
{
    CUcontext context;
    CUresult error = call->cuDeviceGet(d, device);
    if (error)
        return driver_failed(call, "cuDeviceGet", error, why);
    error = call->cuDevicePrimaryCtxRetain(&context, *d);
    if (error)
        return driver_failed(call, "cuDevicePrimaryCtxRetain", error, why);
    const char *function;
    error = calm_enter(call, context, &function);
    if (!error)
        return 0;
    call->cuDevicePrimaryCtxRelease_v2(*d);
    return driver_failed(call, function, error, why);
}

/* Frees the memory in its own context. Releases that context twice: for enter_device and for the
 * allocation. */
static int give(const struct cuda_api *call, uint64_t at, struct text *why)
{
    struct driver_pointer p;
    CUdevice d;
    int r = driver_pointer((const void *)(uintptr_t)at, &p, why);
    if (r < 0 || p.memory != DRIVER_DEVICE)
        return r < 0 ? r : -EINVAL;
    r = enter_device(call, p.device, &d, why);
    if (r < 0)
        return r;
    CUresult error = call->cuMemFree_v2(at);
    calm_leave(call);
    call->cuDevicePrimaryCtxRelease_v2(d);
    if (error)
        return driver_failed(call, "cuMemFree", error, why);
    call->cuDevicePrimaryCtxRelease_v2(d);
    return 0;
}

static void give_returned(struct ipc_export *share, const struct cuda_api *call)
{
    ipc_import_sweep(ipc_export_handles(share));
    for (uint64_t at = ipc_export_next_returned(share); at; at = ipc_export_next_returned(share))
        give(call, at, NULL);
}

static int keep(struct ipc_export *share, uint64_t at, size_t bytes, bool ours, struct text *why)
{
    struct driver_pointer p;
    int r = driver_pointer((const void *)(uintptr_t)at, &p, why);
    if (r == 0)
        r = ipc_export_keep(share, at, bytes, p.buffer, ours);
    if (r == -ENOMEM)
        text_add(why, "no memory");
    else if (r == -EINVAL)
        text_add(why, "part of it is registered already, or of tutti_cuda_alloc");
    return r;
}

int device_memory_alloc(struct world *world, size_t bytes, int device, int otherwise, void **ptr,
                        struct text *why)
{
    const struct driver *driver;
    CUdevice d;
    CUdeviceptr at = 0;
    int r = driver_open(&driver, why);
    struct ipc_export *share = r == 0 ? share_of(world, why) : NULL;
    if (r < 0 || !share)
        return r < 0 ? r : -ENOMEM;
    const struct cuda_api *call = &driver->call;
    give_returned(share, call);
    device = choose_device(driver, device, otherwise, why);
    size_t room = bytes ? (bytes + BLOCK - 1) / BLOCK * BLOCK : BLOCK;
    if (room < bytes) {
        text_add(why, "no device has that much memory");
        return -ENOMEM;
    }
    r = device < 0 ? device : enter_device(call, device, &d, why);
    if (r < 0)
        return r;
    CUresult error = call->cuMemAlloc_v2(&at, room);
    while (error == CUDA_ERROR_OUT_OF_MEMORY && ipc_export_await_gone(share, PATIENCE_NS)) {
        give_returned(share, call);
        error = call->cuMemAlloc_v2(&at, room);
    }
    r = error ? driver_failed(call, "cuMemAlloc", error, why) : keep(share, at, room, true, why);
    if (r < 0 && !error)
        call->cuMemFree_v2(at);
    calm_leave(call);
    if (r < 0)
        call->cuDevicePrimaryCtxRelease_v2(d);
    else
        *ptr = (void *)(uintptr_t)at;
    return r;
}

static int free_within(struct world *world, void *ptr, uint64_t patience_ns, struct text *why)
{
    struct ipc_export *share = ipc_export_if(world);
    const struct driver *driver;
    if (!share || !ipc_export_is_kept(share, (uint64_t)(uintptr_t)ptr, true)) {
        text_add(why,
                 "it is not the beginning of memory that this rank has from tutti_cuda_alloc and "
                 "has not freed yet");
        return -EINVAL;
    }
    int r = driver_open(&driver, why);
    if (r < 0)
        return r;
    if (patience_ns)
        ipc_import_close_idle(ipc_export_handles(share), false);
    give_returned(share, &driver->call);
    r = ipc_export_let_go(share, (uint64_t)(uintptr_t)ptr, true, patience_ns, why);
    if (r == -EBUSY)
        return 0;                                    /* it is listed, and freed later */
    return r < 0 ? r : give(&driver->call, (uint64_t)(uintptr_t)ptr, why);
}

int device_memory_free(struct world *world, void *ptr, struct text *why)
{
    struct ipc_export *share = ipc_export_if(world);
    const struct driver *driver;
    if (!ptr && share && driver_open(&driver, NULL) == 0) {
        ipc_import_close_idle(ipc_export_handles(share), false);
        give_returned(share, &driver->call);
    }
    if (!ptr)
        return 0;
    return free_within(world, ptr, FREE_PATIENCE_NS, why);
}

void device_memory_free_later(struct world *world, void *ptr)
{
    char unsaid[300];
    struct text why = TEXT_IN(unsaid);
    text_clear(&why);
    free_within(world, ptr, 0, &why);
}

int device_memory_is_device(const void *ptr, struct driver_pointer *pointer, struct text *why)
{
    int r = driver_pointer(ptr, pointer, why);
    return r < 0 ? r : pointer->memory == DRIVER_DEVICE || pointer->memory == DRIVER_MANAGED;
}

int device_memory_register(struct world *world, const struct driver_pointer *pointer, size_t bytes,
                           struct text *why)
{
    struct ipc_export *share = share_of(world, why);
    if (share)
        ipc_import_sweep(ipc_export_handles(share));
    if (pointer->memory == DRIVER_MANAGED) {
        text_add(why, "it is managed memory, which no other process can open");
        return -EINVAL;
    }
    if (pointer->address < pointer->base
        || bytes > pointer->bytes - (pointer->address - pointer->base)) {
        text_add(why, "its buffer on device %d ends %zu bytes behind that address", pointer->device,
                 (size_t)(pointer->bytes - (pointer->address - pointer->base)));
        return -EINVAL;
    }
    return share ? keep(share, pointer->address, bytes, false, why) : -ENOMEM;
}

bool device_memory_is_registered(struct world *world, const void *ptr)
{
    struct ipc_export *share = ipc_export_if(world);
    return share && ipc_export_is_kept(share, (uint64_t)(uintptr_t)ptr, false);
}

int device_memory_unregister(struct world *world, void *ptr, struct text *why)
{
    struct ipc_export *share = ipc_export_if(world);
    if (!share)
        return -EINVAL;
    ipc_import_close_idle(ipc_export_handles(share), false);
    return ipc_export_let_go(share, (uint64_t)(uintptr_t)ptr, false, PATIENCE_NS, why);
}

void device_memory_leave(struct world *world, bool staging)
{
    struct ipc_export *share = ipc_export_if(world);
    if (share)
        ipc_import_close_idle(ipc_export_handles(share), staging);
}

void device_memory_close(struct world *world)
{
    struct ipc_export *share = ipc_export_if(world);
    const struct driver *driver;
    if (!share)
        return;
    ipc_export_recall_all(share, PATIENCE_NS);
    if (driver_open(&driver, NULL) == 0)
        for (uint64_t at = ipc_export_next_ours(share); at; at = ipc_export_next_ours(share))
            give(&driver->call, at, NULL);
    ipc_export_close(world);
}
