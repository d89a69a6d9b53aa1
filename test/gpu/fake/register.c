/* Host memory that is registered, and the questions about pointers. The device addresses of
 * registered memory are never those of the host here, so that a kernel that is given a host address
 * fails as it would on a machine where they differ. */
#include "fake/fake.h"

#include <string.h>
#include <sys/mman.h>

struct range *range_of_host(const void *at, size_t bytes)
{
    const unsigned char *begin = at;
    for (int i = 0; i < RANGES_MOST; i++) {
        struct range *r = &fake.range[i];
        size_t size = r->end - r->begin;
        if (r->kind == RANGE_HOST && begin >= r->host && begin < r->host + size
            && bytes <= (size_t)(r->host + size - begin))
            return r;
    }
    return NULL;
}

static bool is_mapped(const unsigned char *at, size_t bytes)
{
    unsigned char in[256];
    const unsigned char *page = (const unsigned char *)((uintptr_t)at & ~(uintptr_t)(PAGE - 1));
    while (page < at + bytes) {
        size_t left = ((size_t)(at + bytes - page) + PAGE - 1) / PAGE,
               n = left < sizeof in ? left : sizeof in;
        if (mincore((void *)(uintptr_t)page, n * PAGE, in) != 0)
            return false;
        page += n * PAGE;
    }
    return true;
}

/* The page that is pinned with this byte; what is registered must not share one. */
static uintptr_t page_of(const void *at) { return (uintptr_t)at / fake.page; }

CUresult cuMemHostRegister_v2(void *at, size_t bytes, unsigned flags)
{
    ENTER;
    struct CUctx_st *context = NULL;
    CUresult error = context_current(&context, true);
    if (error)
        return error;
    if (!at || !bytes || flags > 15 || !is_mapped(at, bytes))
        return CUDA_ERROR_INVALID_VALUE;
    for (int i = 0; i < RANGES_MOST; i++) {
        const struct range *r = &fake.range[i];
        if (r->kind == RANGE_HOST && page_of(r->host) <= page_of((unsigned char *)at + bytes - 1)
            && page_of(at) <= page_of(r->host + (r->end - r->begin) - 1))
            return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    }
    size_t in_page = (uintptr_t)at % PAGE;
    struct range *r = range_take(RANGE_HOST, bytes + in_page, PAGE);
    if (!r)
        return CUDA_ERROR_OUT_OF_MEMORY;
    r->begin += in_page;
    r->host = at;
    r->context = context;
    return 0;
}

CUresult cuMemHostUnregister(void *at)
{
    ENTER;
    struct CUctx_st *context = NULL;
    CUresult error = context_seen(&context);
    struct range *r = range_of_host(at, 1);
    if (!r || r->host != at)
        return error ? error : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    if (!error && order_busy(r, 0, UINT64_MAX, true))
        fake_misuse("unregistered too early", "a copy is still under way in the %llu bytes at %p",
                    r->end - r->begin, at);
    range_idle(r, __func__);
    words_await(r);
    if (context && !error)
        context_drain(context);
    range_give(r);
    return error;
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *device, void *at, unsigned flags)
{
    ENTER;
    struct CUctx_st *context = NULL;
    CUresult error = context_current(&context, false);
    if (error)
        return error;
    struct range *r = range_of_host(at, 1);
    if (!r || flags)
        return CUDA_ERROR_INVALID_VALUE;
    *device = r->begin + (CUdeviceptr)((unsigned char *)at - r->host);
    return 0;
}

/* ---- attributes ------------------------------------------------------------------------------ */

static const struct range *reserved_around(const struct range *r)
{
    for (int i = 0; i < RANGES_MOST; i++)
        if (fake.range[i].kind == RANGE_RESERVED && fake.range[i].begin <= r->begin
            && r->end <= fake.range[i].end)
            return &fake.range[i];
    return r;
}

static struct range *any_range(CUdeviceptr at)
{
    struct range *r = address_is_ours(at) ? range_of(at) : range_of_host((void *)(uintptr_t)at, 1);
    return r && r->kind != RANGE_RESERVED ? r : NULL;
}

static int ordinal(const struct range *r)
{
    if (!r->memory)
        return r->context->device;
    for (int i = 0; i < fake.devices; i++)
        if (fake.physical[i] == r->memory->device)
            return i;
    return r->context ? r->context->device : 0;     /* of a device that this process does not see */
}

static CUresult attribute_of(const struct range *r, CUdeviceptr at, int attribute, void *value)
{
    const struct range *whole = r->kind == RANGE_MAPPED ? reserved_around(r) : r;
    CUdeviceptr device = r->kind == RANGE_HOST && !address_is_ours(at)
        ? r->begin + (at - (uintptr_t)r->host)
        : at;
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        *(CUcontext *)value = r->kind == RANGE_MAPPED ? NULL : r->context;
        return 0;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *(unsigned *)value = r->kind == RANGE_HOST ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
        return 0;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        *(CUdeviceptr *)value = device;
        return 0;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        if (r->kind != RANGE_HOST)
            return CUDA_ERROR_INVALID_VALUE;
        *(void **)value = range_see(r, device);
        return 0;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        *(unsigned long long *)value = r->id;
        return 0;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        *(unsigned *)value = 0;
        return 0;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *(int *)value = ordinal(r);
        return 0;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        *(unsigned *)value = r->kind == RANGE_ALLOC;
        return 0;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        *(CUdeviceptr *)value = whole->kind == RANGE_HOST ? (uintptr_t)whole->host : whole->begin;
        return 0;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        *(size_t *)value = whole->end - whole->begin;
        return 0;
    case CU_POINTER_ATTRIBUTE_MAPPED:
        *(unsigned *)value = 1;
        return 0;
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        *(unsigned long long *)value = r->kind == RANGE_MAPPED && r->memory->shareable
            ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
            : 0;
        return 0;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult cuPointerGetAttribute(void *value, int attribute, CUdeviceptr at)
{
    ENTER;
    const struct range *r = any_range(at);
    return r ? attribute_of(r, at, attribute, value) : CUDA_ERROR_INVALID_VALUE;
}

/* Unlike the one above it knows no wrong pointer: of one that is not CUDA's it says nothing but
 * zeroes, and -2 for the device. */
CUresult cuPointerGetAttributes(unsigned count, int *attributes, void **values, CUdeviceptr at)
{
    ENTER;
    const struct range *r = any_range(at);
    for (unsigned i = 0; i < count; i++) {
        if (r && attribute_of(r, at, attributes[i], values[i]) == 0)
            continue;
        switch (attributes[i]) {
        case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        case CU_POINTER_ATTRIBUTE_MAPPED:
            *(unsigned *)values[i] = 0;
            break;
        case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
            *(int *)values[i] = -2;
            break;
        default:
            memset(values[i], 0, sizeof(void *));
        }
    }
    return 0;
}

int fakeHostAccess(const void *at, size_t bytes, int write)
{
    pthread_mutex_lock(&fake.lock);
    struct range *r = range_of_host(at, bytes);
    bool busy = r && order_busy(r, (uintptr_t)at, (uintptr_t)at + bytes, write != 0);
    if (busy)
        fake_misuse("touched before the copy ended", "the host %s %zu bytes at %p",
                    write ? "writes" : "reads", bytes, at);
    pthread_mutex_unlock(&fake.lock);
    return busy;
}

void fake_end_check(void)
{
    for (int i = 0; i < RANGES_MOST; i++) {
        const struct range *r = &fake.range[i];
        if (r->kind == RANGE_HOST)
            fake_misuse("never unregistered", "%llu bytes of host memory at %p", r->end - r->begin,
                        (void *)r->host);
        if (r->kind == RANGE_OPENED)
            fake_misuse("never closed", "%llu bytes of process %d's memory", r->end - r->begin,
                        r->exporter);
    }
}
