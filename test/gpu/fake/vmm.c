/* Memory of cuMemCreate: made, given an address, mapped there, opened for access, each by a call of
 * its own; shared by descriptors. A handle is a number with a count; the memory lives as long as a
 * handle or a mapping does. */
#include "fake/fake.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { HANDLES_MOST = 256 };

static struct { struct memory *memory; int count; } handles[HANDLES_MOST];

static CUmemGenericAllocationHandle handle_make(struct memory *memory)
{
    for (int i = 0; i < HANDLES_MOST; i++)
        if (!handles[i].count) {
            handles[i].memory = memory;
            handles[i].count = 1;
            return 0x1000u + (unsigned)i;
        }
    return 0;
}

static struct memory *memory_of(CUmemGenericAllocationHandle handle)
{
    return handle >= 0x1000 && handle < 0x1000 + HANDLES_MOST && handles[handle - 0x1000].count
        ? handles[handle - 0x1000].memory
        : NULL;
}

static bool prop_is_good(const CUmemAllocationProp *prop)
{
    return prop && prop->type == CU_MEM_ALLOCATION_TYPE_PINNED
        && prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE && prop->location.id >= 0
        && prop->location.id < fake.devices;
}

CUresult cuMemGetAllocationGranularity(size_t *bytes, const CUmemAllocationProp *prop, int option)
{
    ENTER;
    if (!prop_is_good(prop) || option < 0 || option > 1)
        return CUDA_ERROR_INVALID_VALUE;
    *bytes = GRANULE;
    return 0;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes,
                     const CUmemAllocationProp *prop, unsigned long long flags)
{
    ENTER;
    if (!prop_is_good(prop) || flags || !bytes || bytes % GRANULE)
        return CUDA_ERROR_INVALID_VALUE;
    struct memory *m = memory_make(bytes, prop->location.id);
    if (!m)
        return CUDA_ERROR_OUT_OF_MEMORY;
    m->shareable = prop->requestedHandleTypes & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    *handle = handle_make(m);
    return *handle ? 0 : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    ENTER;
    struct memory *m = memory_of(handle);
    if (!m)
        return CUDA_ERROR_INVALID_VALUE;
    if (--handles[handle - 0x1000].count == 0)
        memory_drop(m);
    return 0;
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *at)
{
    ENTER;
    struct range *r = range_of((uintptr_t)at);
    if (!r || r->kind != RANGE_MAPPED)
        return CUDA_ERROR_INVALID_VALUE;
    for (int i = 0; i < HANDLES_MOST; i++)
        if (handles[i].count && handles[i].memory == r->memory) {
            handles[i].count++;
            *handle = 0x1000u + (unsigned)i;
            return 0;
        }
    r->memory->refs++;
    *handle = handle_make(r->memory);
    return *handle ? 0 : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemExportToShareableHandle(void *shareable, CUmemGenericAllocationHandle handle,
                                      int type, unsigned long long flags)
{
    ENTER;
    struct memory *m = memory_of(handle);
    if (!m || !m->shareable || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || flags)
        return CUDA_ERROR_INVALID_VALUE;
    int fd = fcntl(m->fd, F_DUPFD_CLOEXEC, 0);
    if (fd < 0)
        return CUDA_ERROR_OPERATING_SYSTEM;
    *(int *)shareable = fd;
    return 0;
}

/* The descriptor stands for itself in `shareable`, and stays the caller's. It may come back to the
 * process that exported it. */
CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *shareable,
                                        int type)
{
    ENTER;
    if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_INVALID_VALUE;
    int fd = fcntl((int)(intptr_t)shareable, F_DUPFD_CLOEXEC, 0);
    struct memory *m = fd >= 0 ? memory_adopt(fd) : NULL;
    if (!m) {
        if (fd >= 0)
            close(fd);
        return CUDA_ERROR_INVALID_VALUE;
    }
    m->shareable = true;
    *handle = handle_make(m);
    return *handle ? 0 : CUDA_ERROR_OUT_OF_MEMORY;
}

/* ---- addresses ------------------------------------------------------------------------------- */

CUresult cuMemAddressReserve(CUdeviceptr *at, size_t bytes, size_t alignment, CUdeviceptr wish,
                             unsigned long long flags)
{
    ENTER;
    (void)wish;
    if (!bytes || bytes % GRANULE || flags || (alignment & (alignment - 1)))
        return CUDA_ERROR_INVALID_VALUE;
    struct range *r = range_take(RANGE_RESERVED, bytes, alignment > GRANULE ? alignment : GRANULE);
    if (!r)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *at = r->begin;
    return 0;
}

/* The reserved range around, or NULL; *mapped: how many mappings have a part of these addresses. */
static struct range *reserved(CUdeviceptr at, size_t bytes, int *mapped)
{
    struct range *found = NULL;
    *mapped = 0;
    for (int i = 0; i < RANGES_MOST; i++) {
        struct range *r = &fake.range[i];
        if (r->kind == RANGE_RESERVED && at >= r->begin && at < r->end && bytes <= r->end - at)
            found = r;
        else if (r->kind == RANGE_MAPPED && r->begin < at + bytes && at < r->end)
            ++*mapped;
    }
    return found;
}

CUresult cuMemAddressFree(CUdeviceptr at, size_t bytes)
{
    ENTER;
    int mapped;
    struct range *r = reserved(at, bytes, &mapped);
    if (!r || r->begin != at || r->end != at + bytes)
        return CUDA_ERROR_INVALID_VALUE;
    if (mapped)
        fake_misuse("address freed while mapped", "%zu bytes", bytes);
    range_give(r);
    return 0;
}

CUresult cuMemMap(CUdeviceptr at, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags)
{
    ENTER;
    int mapped;
    struct memory *m = memory_of(handle);
    struct range *r = reserved(at, bytes, &mapped);
    if (!m || !r || flags || !bytes || bytes % GRANULE || offset || bytes > m->bytes)
        return CUDA_ERROR_INVALID_VALUE;
    if (mapped)
        return CUDA_ERROR_ALREADY_MAPPED;
    r = range_take(RANGE_MAPPED, bytes, GRANULE);
    if (!r)
        return CUDA_ERROR_OUT_OF_MEMORY;
    r->begin = at;
    r->end = at + bytes;
    r->memory = m;
    m->refs++;
    return 0;
}

CUresult cuMemUnmap(CUdeviceptr at, size_t bytes)
{
    ENTER;
    struct range *r = range_of(at);
    if (!r || r->kind != RANGE_MAPPED || r->begin != at || r->end != at + bytes)
        return CUDA_ERROR_INVALID_VALUE;
    struct CUctx_st *context = NULL;
    CUresult error = context_seen(&context);
    if ((!context || !error) && order_busy(r, 0, UINT64_MAX, true))
        fake_misuse("unmapped too early", "work is still under way in these %zu bytes", bytes);
    range_idle(r, __func__);
    range_give(r);
    return 0;
}

CUresult cuMemSetAccess(CUdeviceptr at, size_t bytes, const CUmemAccessDesc *access, size_t count)
{
    ENTER;
    struct range *r = range_of(at);
    if (!r || r->kind != RANGE_MAPPED || r->begin != at || r->end != at + bytes || !access
        || !count)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++) {
        if (access[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE || access[i].location.id < 0
            || access[i].location.id >= fake.devices)
            return CUDA_ERROR_INVALID_DEVICE;
        r->readable = access[i].flags & 1;
        r->writable = access[i].flags & 2;
    }
    return 0;
}
