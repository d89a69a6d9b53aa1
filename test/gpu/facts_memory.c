/* Memory: what its ranges and numbers mean, what becomes of what is lent. */
#include "facts.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    MEBI = 1 << 20, ROOM = 1 << 30, SEGMENTS = 3, INSIDE = 64, LARGE = 256 * MEBI,
    SMALL = 256 << 10,
    PIECE = 8 * MEBI, LONG = 256 * MEBI, COPIES = 2000, QUEUE_MS = 700
};

static CUstream own_stream(void)
{
    CUstream stream = NULL;
    cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    return stream;
}

/* The first byte there, or what refused to tell. */
static void read_byte(const char *what, CUdeviceptr at, CUstream stream)
{
    unsigned char byte = 0;
    CUresult copied = cu.cuMemcpyDtoHAsync_v2(&byte, at, 1, stream);
    CUresult ended = cu.cuStreamSynchronize(stream);
    fact("%s: cuMemcpyDtoHAsync %s, cuStreamSynchronize %s, byte %#x", what, facts_name(copied),
         facts_name(ended), byte);
}

static void put_byte(CUdeviceptr at, unsigned char byte, size_t bytes, CUstream stream)
{
    cu.cuMemsetD8Async(at, byte, bytes, stream);
    cu.cuStreamSynchronize(stream);
}

/* ---- memory of cuMemCreate ------------------------------------------------------------------- */

static void retained(CUdeviceptr at, CUmemGenericAllocationHandle handle)
{
    CUmemGenericAllocationHandle one = 0, two = 0, three = 0;
    CUresult a = cu.cuMemRetainAllocationHandle(&one, (void *)(uintptr_t)at);
    CUresult b = cu.cuMemRetainAllocationHandle(&two, (void *)(uintptr_t)at);
    CUresult c = cu.cuMemRetainAllocationHandle(&three, (void *)(uintptr_t)(at + INSIDE));
    fact("cuMemRetainAllocationHandle: %s, again %s: %s; of an inner address %s: %s; %s "
         "cuMemCreate's", facts_name(a), facts_name(b),
         one == two ? "the same value" : "another value", facts_name(c),
         one == three ? "the same value" : "another value",
         one == handle ? "the same as" : "not the same as");
    if (!a)
        cu.cuMemRelease(one);
    if (!b)
        cu.cuMemRelease(two);
    if (!c)
        cu.cuMemRelease(three);
}

int facts_vmm(void)
{
    CUmemAllocationProp prop = facts_prop();
    CUmemGenericAllocationHandle handle[SEGMENTS + 1];
    CUdeviceptr base = 0;
    char name[80];
    if (!facts_begin())
        return 0;
    size_t g = facts_grain;
    fact("granularity %zu KiB", g >> 10);
    if (cu.cuMemAddressReserve(&base, ROOM, 0, 0, 0))
        return 0;
    for (int i = 0; i <= SEGMENTS; i++)
        OK(cu.cuMemCreate(&handle[i], g, &prop, 0));
    for (int i = 0; i < SEGMENTS; i++)
        OK(facts_map(base + (size_t)i * g, g, handle[i]));
    for (int i = 0; i < SEGMENTS; i++) {
        snprintf(name, sizeof name, "handle %d of 3 in a reservation of 1 GiB, +%d", i, INSIDE);
        facts_pointer(name, base + (size_t)i * g + INSIDE, base);
    }
    retained(base + g, handle[1]);
    facts_pointer("behind the mapped part of the reservation", base + SEGMENTS * g, base);
    CUstream stream = own_stream();
    CUresult said = cu.cuMemsetD8Async(base, 7, SEGMENTS * g, stream);
    fact("a memset over all three segments at once: %s, %s", facts_name(said),
         facts_name(cu.cuStreamSynchronize(stream)));
    OK(cu.cuMemUnmap(base + g, g));
    facts_pointer("the second one unmapped", base + g + INSIDE, base);
    OK(facts_map(base + g, g, handle[SEGMENTS]));
    facts_pointer("another handle mapped there", base + g + INSIDE, base);
    retained(base + g, handle[SEGMENTS]);
    OK(cu.cuMemUnmap(base + g, g));
    OK(facts_map(base + g, g, handle[1]));
    facts_pointer("the former handle mapped there again", base + g + INSIDE, base);
    OK(facts_map(base + 4 * g, g, handle[1]));
    facts_pointer("the same handle at a second place", base + 4 * g + INSIDE, base);
    return 0;
}

int facts_past_end(void)
{
    CUmemAllocationProp prop = facts_prop();
    CUmemGenericAllocationHandle handle;
    CUdeviceptr base = 0, to = 0;
    if (!facts_begin())
        return 0;
    OK(cu.cuMemAddressReserve(&base, ROOM, 0, 0, 0));
    OK(cu.cuMemCreate(&handle, facts_grain, &prop, 0));
    OK(facts_map(base, facts_grain, handle));
    OK(cu.cuMemAlloc_v2(&to, 2 * facts_grain));
    CUstream stream = own_stream();
    CUresult said = cu.cuMemcpyDtoDAsync_v2(to, base, 2 * facts_grain, stream);
    CUresult ended = cu.cuStreamSynchronize(stream);
    fact("a copy that runs past the mapped part: %s, then %s, then cuMemAlloc %s", facts_name(said),
         facts_name(ended), facts_name(cu.cuMemAlloc_v2(&to, 4096)));
    return 0;
}

int facts_vmm_freed(void)
{
    CUmemAllocationProp prop = facts_prop();
    CUmemGenericAllocationHandle handle;
    CUdeviceptr at = 0;
    int fd = -1;
    if (!facts_begin())
        return 0;
    size_t before = facts_free_mib();
    OK(cu.cuMemAddressReserve(&at, LARGE, 0, 0, 0));
    OK(cu.cuMemCreate(&handle, LARGE, &prop, 0));
    OK(facts_map(at, LARGE, handle));
    OK(cu.cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    size_t mapped = facts_free_mib();
    OK(cu.cuMemUnmap(at, LARGE));
    OK(cu.cuMemRelease(handle));
    size_t released = facts_free_mib();
    close(fd);
    fact("free MiB: %zu; 256 MiB mapped and a descriptor made %zu; unmapped and released %zu; "
         "descriptor closed %zu", before, mapped, released, facts_free_mib());
    return 0;
}

/* ---- memory of cuMemAlloc, lent -------------------------------------------------------------- */

int facts_lend(void)
{
    CUdeviceptr at = 0, small[2] = { 0 }, anew = 0;
    CUipcMemHandle handle[3];
    unsigned long long id = 0, id_anew = 0;
    char go;
    if (!facts_begin())
        return 0;
    CUstream stream = own_stream();
    OK(cu.cuMemAlloc_v2(&at, PIECE));
    OK(cu.cuMemAlloc_v2(&small[0], SMALL));
    OK(cu.cuMemAlloc_v2(&small[1], SMALL));
    put_byte(at, 0x31, PIECE, stream);
    put_byte(small[0], 0x32, SMALL, stream);
    put_byte(small[1], 0x33, SMALL, stream);
    facts_pointer("cuMemAlloc of 8 MiB", at + INSIDE, at);
    facts_pointer("cuMemAlloc of 256 KiB", small[0] + INSIDE, small[0]);
    fact("two of 256 KiB lie %lld KiB apart", (long long)(small[1] - small[0]) / 1024);
    CUresult said = cu.cuIpcGetMemHandle(&handle[0], at);
    fact("cuIpcGetMemHandle: %s; of an inner address: %s", facts_name(said),
         facts_name(cu.cuIpcGetMemHandle(&handle[1], at + INSIDE)));
    if (said || cu.cuIpcGetMemHandle(&handle[1], small[0])
        || cu.cuIpcGetMemHandle(&handle[2], small[1]))
        return 0;
    fact("the handles of two in one block are %s",
         memcmp(&handle[1], &handle[2], sizeof handle[1]) ? "not the same" : "the same");
    cu.cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, at);
    if (!tell(handle, sizeof handle) || !hear(&go, 1))
        return 0;
    OK(cu.cuMemFree_v2(at));
    OK(cu.cuMemAlloc_v2(&anew, PIECE));
    cu.cuPointerGetAttribute(&id_anew, CU_POINTER_ATTRIBUTE_BUFFER_ID, anew);
    fact("freed and allocated anew: %s address, %s BUFFER_ID", at == anew ? "the same" : "another",
         id == id_anew ? "THE SAME" : "another");
    return 0;
}

int facts_borrow(void)
{
    CUipcMemHandle handle[3];
    CUdeviceptr at = 0, again = 0, small[2] = { 0 };
    if (!facts_begin() || !hear(handle, sizeof handle))
        return 0;
    CUstream stream = own_stream();
    const unsigned lazy = CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS;
    CUresult said = cu.cuIpcOpenMemHandle_v2(&at, handle[0], lazy);
    fact("cuIpcOpenMemHandle: %s", facts_name(said));
    if (said)
        return 0;
    facts_pointer("an import", at + INSIDE, at);
    said = cu.cuIpcOpenMemHandle_v2(&again, handle[0], lazy);
    fact("opened twice in one process: %s, %s address", facts_name(said),
         said         ? "no"
         : again == at ? "the same"
                       : "another");
    if (!said)
        fact("closed once: %s", facts_name(cu.cuIpcCloseMemHandle(again)));
    read_byte("after it", at, stream);
    for (int i = 0; i < 2; i++) {
        said = cu.cuIpcOpenMemHandle_v2(&small[i], handle[i + 1], lazy);
        fact("of two in one block, the %s opened: %s", i ? "second" : "first", facts_name(said));
        if (!said)
            read_byte("its first byte", small[i], stream);
        if (!said)
            facts_pointer("it", small[i], small[0]);
    }
    fact("closed: %s", facts_name(cu.cuIpcCloseMemHandle(at)));
    said = cu.cuIpcOpenMemHandle_v2(&again, handle[0], lazy);
    fact("opened again: %s, %s address", facts_name(said), again == at ? "the same" : "another");
    facts_pointer("it", again, again);
    tell("g", 1);
    return 0;
}

/* ---- an owner that frees, that dies ---------------------------------------------------------- */

int facts_goes(void)
{
    CUdeviceptr at = 0;
    CUipcMemHandle handle;
    char go;
    if (!facts_begin())
        return 0;
    size_t before = facts_free_mib();
    OK(cu.cuMemAlloc_v2(&at, LARGE));
    put_byte(at, 0x41, LARGE, own_stream());
    OK(cu.cuIpcGetMemHandle(&handle, at));
    if (!tell(&handle, sizeof handle) || !hear(&go, 1))
        return 0;
    size_t lent = facts_free_mib();
    double start = facts_ms();
    CUresult said = cu.cuMemFree_v2(at);
    double took = facts_ms() - start;
    fact("cuMemFree of what a peer has open: %s, %.2f ms; free MiB %zu, with it %zu, after it %zu",
         facts_name(said), took, before, lent, facts_free_mib());
    tell("g", 1);
    if (hear(&go, 1))
        fact("and when the peer has closed it: %zu", facts_free_mib());
    return 0;
}

int facts_stays(void)
{
    CUdeviceptr at = 0;
    CUipcMemHandle handle;
    char go;
    if (!facts_begin() || !hear(&handle, sizeof handle)
        || cu.cuIpcOpenMemHandle_v2(&at, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)
        || !tell("g", 1) || !hear(&go, 1))
        return 0;
    read_byte("read of what its owner has freed", at, own_stream());
    fact("closed: %s", facts_name(cu.cuIpcCloseMemHandle(at)));
    tell("g", 1);
    return 0;
}

static int owner(bool killed)
{
    CUdeviceptr at = 0;
    CUipcMemHandle handle;
    char go;
    if (!facts_begin())
        return 0;
    OK(cu.cuMemAlloc_v2(&at, LONG));
    put_byte(at, 0x51, LONG, own_stream());
    OK(cu.cuIpcGetMemHandle(&handle, at));
    if (!tell(&handle, sizeof handle) || !hear(&go, 1))
        return 0;
    if (killed)
        kill(getpid(), SIGKILL);
    exit(0);
}

int facts_killed(void) { return owner(true); }
int facts_exits(void) { return owner(false); }

int facts_reads(void)
{
    CUdeviceptr at = 0, to = 0;
    CUipcMemHandle handle;
    char go;
    int enqueued = 0;
    if (!facts_begin() || !hear(&handle, sizeof handle))
        return 0;
    CUstream stream = own_stream();
    OK(cu.cuMemAlloc_v2(&to, LONG));
    OK(cu.cuIpcOpenMemHandle_v2(&at, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    double start = facts_ms();
    OK(cu.cuMemcpyDtoDAsync_v2(to, at, LONG, stream));
    OK(cu.cuStreamSynchronize(stream));
    int copies = (int)(QUEUE_MS / (facts_ms() - start));
    for (start = facts_ms(); enqueued < copies && enqueued < COPIES; enqueued++)
        if (cu.cuMemcpyDtoDAsync_v2(to, at, LONG, stream))
            break;
    double full = facts_ms();
    tell("g", 1);
    hear(&go, 1);                                    /* its end */
    double dead = facts_ms();
    CUresult under_way = cu.cuStreamQuery(stream), said = cu.cuStreamSynchronize(stream);
    double done = facts_ms();
    fact("%d copies of %d MiB enqueued in %.1f ms; the owner's end is seen after %.1f ms more, the "
         "stream says %s then; all done: %s, after %.1f ms", enqueued, LONG / MEBI, full - start,
         dead - full, facts_name(under_way), facts_name(said), done - start);
    read_byte("what came", to, stream);
    read_byte("read of a dead owner's memory", at, stream);
    fact("closed: %s", facts_name(cu.cuIpcCloseMemHandle(at)));
    return 0;
}

/* ---- memory of cuMemCreate, lent by descriptors ---------------------------------------------- */

int facts_descriptor(void)
{
    CUmemAllocationProp prop = facts_prop();
    CUmemGenericAllocationHandle handle[2];
    CUdeviceptr at = 0;
    int fd = -1;
    char go;
    if (!facts_begin())
        return 0;
    CUstream stream = own_stream();
    OK(cu.cuMemAddressReserve(&at, facts_grain, 0, 0, 0));
    OK(cu.cuMemCreate(&handle[0], facts_grain, &prop, 0));
    OK(cu.cuMemCreate(&handle[1], facts_grain, &prop, 0));
    OK(facts_map(at, facts_grain, handle[0]));
    put_byte(at, 0x61, facts_grain, stream);
    OK(cu.cuMemExportToShareableHandle(&fd, handle[0], CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                       0));
    if (!tell_fd(fd) || !hear(&go, 1))
        return 0;
    OK(cu.cuMemUnmap(at, facts_grain));
    OK(facts_map(at, facts_grain, handle[1]));
    put_byte(at, 0x62, facts_grain, stream);
    tell("g", 1);
    hear(&go, 1);
    return 0;
}

int facts_import(void)
{
    CUmemGenericAllocationHandle handle = 0, again = 0;
    CUdeviceptr at = 0;
    char go;
    if (!facts_begin())
        return 0;
    CUstream stream = own_stream();
    int fd = hear_fd();
    void *as_handle = (void *)(intptr_t)fd;
    CUresult said = cu.cuMemImportFromShareableHandle(&handle, as_handle,
                                                      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    CUresult twice = cu.cuMemImportFromShareableHandle(&again, as_handle,
                                                       CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    fact("cuMemImportFromShareableHandle: %s; again %s, %s value", facts_name(said),
         facts_name(twice), handle == again ? "the same" : "another");
    if (said)
        return 0;
    OK(cu.cuMemAddressReserve(&at, 4 * facts_grain, 0, 0, 0));
    fact("mapped longer than the handle is: %s",
         facts_name(cu.cuMemMap(at, 2 * facts_grain, 0, handle, 0)));
    OK(facts_map(at, facts_grain, handle));
    facts_pointer("an imported mapping", at + INSIDE, at);
    read_byte("read of it", at, stream);
    tell("g", 1);
    hear(&go, 1);
    read_byte("read of it when its owner has mapped other memory there", at, stream);
    tell("g", 1);
    return 0;
}
