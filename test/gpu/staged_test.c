/* ctest: timeout=240 */
/* The staging on the devices: it is opened once and closed when its comm is freed, whatever the
 * program's memory is; many rounds go through its slots; and memory of cuMemCreate is taken by its
 * mappings: several in a buffer, none behind its end, another one where one was. */
#include "case_device.h"
#include "gpu/device_slots.h"
#include "gpu/ipc_export.h"
#include "gpu/ipc_import.h"
#include "support/ranks.h"

#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <tutti_cuda.h>

enum { MIB = 1 << 20, BLOCK = 2 << 20 };

#define PIPELINED                                                                                  \
    "broadcast:-inf=pipelined;all_reduce:-inf=pipelined;all_gather:-inf=pipelined;"                \
    "gather:-inf=pipelined;scatter:-inf=pipelined;all_to_all:-inf=pipelined;"

static void *address(CUdeviceptr at) { return (void *)(uintptr_t)at; }

static int enter(void)
{
    CUcontext context;
    return !case_cuda() || cu.cuDevicePrimaryCtxRetain(&context, 0) != 0
        || cu.cuCtxSetCurrent(context) != 0;
}

static bool went_directly(const tutti_comm *comm)
{
    return load_relaxed64(&comm->watch.mine->mapped) == 2 * comm->seq + 1;
}

/* ---- calls of the driver --------------------------------------------------------------------- */

/* Sums over the ranks, of OPERATIONS operations behind the first two. */
enum figure { OPENS, CLOSES, HANDLES, LOADS, LAUNCHES, COPIES, MARKS, POLLS, FIGURES };
enum { OPERATIONS = 4 };

static uint64_t figure(int which)
{
    static const char *const calls[FIGURES][6] = {
        [OPENS] = { "cuIpcOpenMemHandle_v2", "cuMemImportFromShareableHandle", "cuMemMap" },
        [CLOSES] = { "cuIpcCloseMemHandle", "cuMemUnmap", "cuMemFree_v2" },
        [HANDLES] = { "cuIpcGetMemHandle", "cuMemExportToShareableHandle", "cuMemAlloc_v2" },
        [LOADS] = { "cuModuleLoadData" },
        [LAUNCHES] = { "cuLaunchKernel" },
        [COPIES] = { "cuMemcpyDtoDAsync_v2", "cuMemcpyDtoHAsync_v2", "cuMemcpyHtoDAsync_v2",
                     "cuMemcpy2DAsync_v2" },
        [MARKS] = { "cuEventRecord", "cuStreamIsCapturing", "cuPointerGetAttributes" },
        [POLLS] = { "cuEventQuery", "cuStreamQuery" },
    };
    uint64_t n = 0;
    for (int i = 0; i < 6 && calls[which][i]; i++)
        n += case_calls_of(calls[which][i]);
    return n;
}

static int counts(tutti_comm *world, int rank)
{
    CUdeviceptr send, recv;
    uint64_t before[FIGURES];
    CHECK_IS(enter(), 0);
    CHECK_IS(cu.cuMemAlloc_v2(&send, MIB), 0);
    CHECK_IS(cu.cuMemAlloc_v2(&recv, MIB), 0);
    case_fill(send, (unsigned char)rank, MIB);
    for (int i = 0; i < 2 + OPERATIONS; i++) {
        for (int f = 0; i == 2 && f < FIGURES; f++)
            before[f] = figure(f);
        CHECK_IS(tutti_all_reduce(address(send), address(recv), MIB / 4, TUTTI_U32, TUTTI_SUM,
                                  world, NULL),
                 0);
        CHECK(went_directly(world));
    }
    for (int f = 0; f < FIGURES; f++)
        fetch_add64(&page->number[f], figure(f) - before[f]);
    int n = tutti_size(world);
    uint32_t each = (uint32_t)(n * (n - 1) / 2) * 0x01010101u, seen[4];
    case_get(seen, recv + MIB - sizeof seen, sizeof seen);
    CHECK(seen[0] == each && seen[3] == each);
    CHECK_IS(cu.cuMemFree_v2(send), 0);
    CHECK_IS(cu.cuMemFree_v2(recv), 0);
    return 0;
}

static void opened_once(void **state)
{
    (void)state;
    static const char *const roads[] = { "leader", "peers" };
    NEEDS_FAKE("counts its calls");
    for (int r = 0; r < 2; r++) {
        char rules[300];
        uint64_t n[FIGURES];
        snprintf(rules, sizeof rules, PIPELINED "device:-inf=%s", roads[r]);
        setenv("TUTTI_ALGORITHM", rules, 1);
        assert_int_equal(ranks_run(8, counts, 0), 0);
        for (int f = 0; f < FIGURES; f++)
            n[f] = load_relaxed64(&page->number[f]);
        printf("%s, all_reduce of 1 MiB by 8 ranks, plain memory; a rank's operation, on average: "
               "opens %.2f closes %.2f handles %.2f module loads %.2f launches %.2f copies %.2f "
               "marks and questions %.2f\n",
               roads[r], (double)n[OPENS] / 8 / OPERATIONS, (double)n[CLOSES] / 8 / OPERATIONS,
               (double)n[HANDLES] / 8 / OPERATIONS, (double)n[LOADS] / 8 / OPERATIONS,
               (double)n[LAUNCHES] / 8 / OPERATIONS, (double)n[COPIES] / 8 / OPERATIONS,
               (double)n[MARKS] / 8 / OPERATIONS);
        assert_int_equal(n[OPENS], 0);
        assert_int_equal(n[CLOSES], 0);
        assert_int_equal(n[HANDLES], 0);
        assert_int_equal(n[LOADS], 0);
    }
}

/* ---- comms ----------------------------------------------------------------------------------- */

static int sum(tutti_comm *comm, CUdeviceptr at)
{
    case_fill(at, 1, MIB);
    int r = tutti_all_reduce(address(at), address(at), MIB / 4, TUTTI_U32, TUTTI_SUM, comm, NULL);
    uint32_t seen;
    case_get(&seen, at + MIB / 2, sizeof seen);
    return r || seen == (uint32_t)tutti_size(comm) * 0x01010101u ? r : -EBADMSG;
}

static int comms(tutti_comm *world, int rank)
{
    CUdeviceptr at;
    tutti_comm *other;
    CHECK_IS(enter(), 0);
    CHECK_IS(cu.cuMemAlloc_v2(&at, MIB), 0);
    CHECK_IS(sum(world, at), 0);
    CHECK_IS(tutti_comm_split(world, 0, -rank, &other), 0);
    CHECK_IS(sum(other, at), 0);
    struct ipc_import *handles = ipc_export_handles(ipc_export_if(world->world));
    int both = ipc_import_open_count(handles);
    uint64_t opens = figure(OPENS), closes = case_calls_of("cuIpcCloseMemHandle");
    CHECK_IS(tutti_barrier(world, NULL), 0);    /* a peer that is first calls its own back */
    CHECK_IS(tutti_comm_free(other), 0);
    CHECK_IS(ipc_import_open_count(handles), both / 2);
    CHECK_IS(case_calls_of("cuIpcCloseMemHandle") - closes, case_counted((uint64_t)both / 2));
    CHECK_IS(sum(world, at), 0);                     /* whose staging is still open */
    CHECK_IS(figure(OPENS), opens);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    /* a call about memory frees what has come back since */
    uint64_t freed = case_calls_of("cuMemFree_v2");
    void *more;
    CHECK_IS(tutti_cuda_alloc(&more, 1, -1, world), 0);
    CHECK(case_calls_of("cuMemFree_v2") - freed <= 1);
    CHECK_IS(tutti_cuda_free(more, world), 0);
    CHECK_IS(cu.cuMemFree_v2(at), 0);
    return 0;
}

static void closed_with_its_comm(void **state)
{
    (void)state;
    setenv("TUTTI_ALGORITHM", PIPELINED "device:-inf=peers", 1);
    assert_int_equal(ranks_run(3, comms, 0), 0);
}

/* ---- rounds ---------------------------------------------------------------------------------- */

static void pattern(unsigned char *at, size_t bytes, uint64_t seed)
{
    for (size_t i = 0; i + 8 <= bytes; i += 8) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        memcpy(at + i, &seed, 8);
    }
}

static int rounds(tutti_comm *world, int rank)
{
    enum { MORE = 2 * DEVICE_SLOT_BYTES + 3 * MIB + 40 };
    CUdeviceptr at;
    unsigned char *want = malloc(2 * (size_t)MORE), *seen = malloc(2 * (size_t)MORE);
    CHECK(want && seen && enter() == 0);
    CHECK_IS(cu.cuMemAlloc_v2(&at, 2 * (size_t)MORE), 0);
    /* one block, to all */
    pattern(want, MORE, 1);
    if (rank == 1)
        case_put(at, want, MORE);
    CHECK_IS(tutti_broadcast(address(at), MORE, TUTTI_U8, 1, world, NULL), 0);
    CHECK(went_directly(world) && case_same(at, want, MORE));
    /* a block from each */
    for (int p = 0; p < 2; p++)
        pattern(want + (size_t)p * MORE, MORE, (uint64_t)p + 5);
    case_fill(at, 0, 2 * (size_t)MORE);
    case_put(at + (size_t)rank * MORE, want + (size_t)rank * MORE, MORE);
    CHECK_IS(tutti_all_gather(address(at + (size_t)rank * MORE), address(at), MORE, TUTTI_U8,
                              world, NULL),
             0);
    CHECK(went_directly(world) && case_same(at, want, 2 * (size_t)MORE));
    /* a block for each, in place */
    for (int p = 0; p < 2; p++)
        pattern(seen + (size_t)p * MORE, MORE, (uint64_t)(10 * rank + p));
    case_put(at, seen, 2 * (size_t)MORE);
    for (int p = 0; p < 2; p++)
        pattern(want + (size_t)p * MORE, MORE, (uint64_t)(10 * p + rank));
    CHECK_IS(tutti_all_to_all(address(at), address(at), MORE, TUTTI_U8, world, NULL), 0);
    CHECK(went_directly(world) && case_same(at, want, 2 * (size_t)MORE));
    CHECK_IS(cu.cuMemFree_v2(at), 0);
    free(want);
    free(seen);
    return 0;
}

static void many_rounds(void **state)
{
    (void)state;
    setenv("TUTTI_ALGORITHM", PIPELINED "device:-inf=leader", 1);
    setenv("FAKE_CUDA_DELAY_US", "1000", 1);
    assert_int_equal(ranks_run(2, rounds, 0), 0);
    unsetenv("FAKE_CUDA_DELAY_US");
}

/* Blocks of an odd number of elements: but the first, none begins at a multiple of 16. */
static int odd_blocks(tutti_comm *world, int rank)
{
    enum { COUNT = 100001, RANKS = 3 };
    CUdeviceptr send, recv;
    uint16_t *values = malloc(RANKS * COUNT * sizeof *values), sum = 0;
    CHECK(values && enter() == 0);
    CHECK_IS(cu.cuMemAlloc_v2(&send, RANKS * COUNT * sizeof *values), 0);
    CHECK_IS(cu.cuMemAlloc_v2(&recv, COUNT * sizeof *values), 0);
    for (int i = 0; i < RANKS * COUNT; i++)
        values[i] = (uint16_t)(i * (rank + 1));
    case_put(send, values, RANKS * COUNT * sizeof *values);
    for (int i = 0; i < RANKS; i++)
        sum = (uint16_t)(sum + i + 1);
    for (int i = 0; i < COUNT; i++)
        values[i] = (uint16_t)((rank * COUNT + i) * sum);
    for (int i = 0; i < 2; i++) {
        CHECK_IS(tutti_reduce_scatter(address(send), address(recv), COUNT, TUTTI_U16, TUTTI_SUM,
                                      world, NULL),
                 0);
        CHECK(went_directly(world) && case_same(recv, values, COUNT * sizeof *values));
    }
    if (!case_real())
        CHECK_IS(fake.fakeUnaligned(), 0);
    CHECK_IS(cu.cuMemFree_v2(send), 0);
    CHECK_IS(cu.cuMemFree_v2(recv), 0);
    free(values);
    return 0;
}

static void no_walk_by_elements(void **state)
{
    (void)state;
    setenv("TUTTI_ALGORITHM", "reduce_scatter:-inf=pipelined;device:-inf=peers", 1);
    assert_int_equal(ranks_run(3, odd_blocks, 0), 0);
}

/* ---- memory of cuMemCreate ------------------------------------------------------------------- */

static int create(CUmemGenericAllocationHandle *handle)
{
    CUmemAllocationProp prop = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
        .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 }
    };
    return (int)cu.cuMemCreate(handle, BLOCK, &prop, 0);
}

static int map(CUdeviceptr at, CUmemGenericAllocationHandle handle)
{
    CUmemAccessDesc access = { { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
                               CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
    return cu.cuMemMap(at, BLOCK, 0, handle, 0) || cu.cuMemSetAccess(at, BLOCK, &access, 1);
}

/* Descriptors of device memory that this process holds. */
static int held(void)
{
    char path[300], to[300];
    int n = 0;
    DIR *all = opendir("/proc/self/fd");
    for (const struct dirent *d; all && (d = readdir(all)) != NULL;) {
        snprintf(path, sizeof path, "/proc/self/fd/%s", d->d_name);
        ssize_t length = readlink(path, to, sizeof to - 1);
        to[length > 0 ? length : 0] = 0;
        n += strstr(to, "fake-gpu") || strstr(to, "nvidia");
    }
    if (all)
        closedir(all);
    return n;
}

/* The sum of what two ranks have there, which is theirs: true, and the result is right. */
static bool sums(tutti_comm *world, CUdeviceptr at, size_t bytes)
{
    unsigned char *mem = malloc(bytes);
    memset(mem, 3 + tutti_rank(world), bytes);
    case_put(at, mem, BLOCK / 2);                    /* piece by piece, each in one mapping */
    case_put(at + BLOCK / 2, mem, bytes - BLOCK / 2);
    int r = tutti_all_reduce(address(at), address(at), bytes, TUTTI_U8, TUTTI_SUM, world, NULL);
    memset(mem, 7, bytes);
    bool same = case_same(at, mem, BLOCK / 2)
        && case_same(at + BLOCK / 2, mem + BLOCK / 2, bytes - BLOCK / 2);
    free(mem);
    return r == 0 && same;
}

static int mappings(tutti_comm *world, int rank)
{
    enum { SOME = BLOCK / 2 + 4096 };
    CUdeviceptr all;
    CUmemGenericAllocationHandle one, two, three;
    (void)rank;
    CHECK_IS(enter(), 0);
    CHECK_IS(cu.cuMemAddressReserve(&all, 4 * BLOCK, 0, 0, 0), 0);
    CHECK(create(&one) == 0 && create(&two) == 0);
    CHECK(map(all + BLOCK, one) == 0 && map(all + 2 * BLOCK, two) == 0);
    /* the end of the first mapping and the beginning of the second one */
    CHECK(sums(world, all + BLOCK + BLOCK / 2, SOME) && went_directly(world));
    /* it runs to where nothing is mapped */
    CHECK_IS(tutti_all_reduce(address(all + 2 * BLOCK), address(all + 2 * BLOCK), BLOCK + 1,
                              TUTTI_U8, TUTTI_SUM, world, NULL),
             -EINVAL);
    CHECK(strstr(tutti_explain(world), "is not mapped"));
    /* In place, of the second mapping, which does not begin where the reservation does. */
    int kept = held();
    CHECK_IS(tutti_register(address(all + 2 * BLOCK), BLOCK, world), 0);
    struct ipc_import *handles = ipc_export_handles(ipc_export_if(world->world));
    int staging = ipc_import_open_count(handles);
    for (int i = 0; i < 3; i++)                      /* the first one makes the boxes */
        CHECK(sums(world, all + 2 * BLOCK + 512, SOME));
    CHECK(went_directly(world));
    CHECK_IS(ipc_import_open_count(handles), staging + 1);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    CHECK_IS(tutti_unregister(address(all + 2 * BLOCK), world), 0);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    CHECK_IS(ipc_import_open_count(handles), staging);
    CHECK_IS(held(), kept);                          /* nothing of ours keeps the memory */
    /* other memory at the same addresses */
    CHECK_IS(cu.cuMemUnmap(all + 2 * BLOCK, BLOCK), 0);
    CHECK_IS(create(&three), 0);
    CHECK_IS(map(all + 2 * BLOCK, three), 0);
    CHECK(sums(world, all + 2 * BLOCK + 512, SOME) && went_directly(world));
    CHECK_IS(tutti_register(address(all + 2 * BLOCK), BLOCK, world), 0);
    for (int i = 0; i < 2; i++)
        CHECK(sums(world, all + 2 * BLOCK + 512, SOME));
    CHECK_IS(ipc_import_open_count(handles), staging + 1);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    CHECK_IS(tutti_unregister(address(all + 2 * BLOCK), world), 0);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    CHECK(cu.cuMemUnmap(all + BLOCK, BLOCK) == 0 && cu.cuMemUnmap(all + 2 * BLOCK, BLOCK) == 0);
    CHECK(cu.cuMemRelease(one) == 0 && cu.cuMemRelease(two) == 0 && cu.cuMemRelease(three) == 0);
    CHECK_IS(cu.cuMemAddressFree(all, 4 * BLOCK), 0);
    return 0;
}

static void by_mappings(void **state)
{
    (void)state;
    setenv("TUTTI_ALGORITHM", PIPELINED "device:-inf=peers", 1);
    assert_int_equal(ranks_run(2, mappings, 0), 0);
}

int main(int argc, char **argv)
{
    (void)argc;
    cases_with(argv, "fake_cuda");
    const struct CMUnitTest tests[] = { cmocka_unit_test(opened_once),
                                        cmocka_unit_test(closed_with_its_comm),
                                        cmocka_unit_test(many_rounds),
                                        cmocka_unit_test(no_walk_by_elements),
                                        cmocka_unit_test(by_mappings) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
