/* The driver is asked once for each mapping. PyTorch's expandable segments are made of mappings of
 * 2 or 20 MiB. */
#include "gpu/segment.h"

#include <errno.h>

/* It has no context, and no handle of cuMemAlloc. */
static bool is_mapped(const struct driver_pointer *pointer)
{
    return pointer->memory == DRIVER_DEVICE && !pointer->context && !pointer->ipc;
}

int segment_around(const struct cuda_api *call, struct driver_pointer *pointer, struct text *why)
{
    CUdeviceptr base = 0;
    size_t bytes = 0;
    if (!is_mapped(pointer))
        return 0;
    CUresult error = call->cuMemGetAddressRange_v2(&base, &bytes, pointer->address);
    if (error)
        return driver_failed(call, "cuMemGetAddressRange", error, why);
    pointer->base = base;
    pointer->bytes = bytes;
    return 0;
}

int segment_walk(const struct cuda_api *call, const struct driver_pointer *pointer, size_t bytes,
                 struct text *why)
{
    CUdeviceptr at = pointer->address, end = at + bytes;
    if (!is_mapped(pointer))
        return 0;
    while (at < end) {
        CUdeviceptr base = 0;
        size_t some = 0;
        CUresult error = call->cuMemGetAddressRange_v2(&base, &some, at);
        if (error == CUDA_ERROR_NOT_FOUND || error == CUDA_ERROR_INVALID_VALUE
            || (!error && (at < base || at - base >= some))) {
            text_add(why,
                     "a buffer of %zu bytes on device %d has memory only behind its first %zu; the "
                     "rest of its addresses is not mapped",
                     bytes, pointer->device, (size_t)(at - pointer->address));
            return -EINVAL;
        }
        if (error)
            return driver_failed(call, "cuMemGetAddressRange", error, why);
        at = base + some;
    }
    return 0;
}

CUresult segment_unmap(const struct cuda_api *call, CUdeviceptr at, size_t bytes)
{
    CUresult error = call->cuMemUnmap(at, bytes);
    if (!error)
        call->cuMemAddressFree(at, bytes);
    return error;
}

int segment_map(const struct cuda_api *call, int device, CUmemGenericAllocationHandle memory,
                size_t bytes, CUdeviceptr *at, struct text *why)
{
    CUmemAccessDesc access = { { CU_MEM_LOCATION_TYPE_DEVICE, device },
                               CU_MEM_ACCESS_FLAGS_PROT_READ };
    CUresult error = call->cuMemAddressReserve(at, bytes, 0, 0, 0);
    if (error)
        return driver_failed(call, "cuMemAddressReserve", error, why);
    error = call->cuMemMap(*at, bytes, 0, memory, 0);
    if (error) {
        call->cuMemAddressFree(*at, bytes);
        return driver_failed(call, "cuMemMap", error, why);
    }
    error = call->cuMemSetAccess(*at, bytes, &access, 1);
    if (!error)
        return 0;
    segment_unmap(call, *at, bytes);
    return driver_failed(call, "cuMemSetAccess", error, why);
}
