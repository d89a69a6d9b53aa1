/* ctest: timeout=240 */
/* Device memory that peers read where it lies: every collective by both roads, on one to four
 * devices, by processes and by threads, has the bits of the host's; where it cannot be, the staging
 * has them; and nothing is read of a buffer that its owner has got back. The driver ends a process
 * that reads what is freed, or what another one still writes. */
#include "case_device.h"
#include "gpu/ipc_import.h"
#include "gpu/ipc_export.h"
#include "support/ranks.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <tutti_cuda.h>

enum { RANKS_MOST = 4, GUARD = 256, ROOM = 1 << 20 };

#define RINGS                                                                                      \
    "broadcast:-inf=pipelined;reduce:-inf=pipelined;all_reduce:-inf=pipelined;"                    \
    "reduce_scatter:-inf=pipelined;all_gather:-inf=pipelined;gather:-inf=pipelined;"               \
              "scatter:-inf=pipelined;all_to_all:-inf=pipelined;scan:-inf=pipelined;"              \
              "exscan:-inf=pipelined;"

struct deed { enum kind kind; tutti_type type; tutti_op op; size_t count; bool in_place; };

static const struct deed deeds[] = {
    { KIND_ALL_REDUCE, TUTTI_F32, TUTTI_SUM, 5000, false },
    { KIND_ALL_REDUCE, TUTTI_F32, TUTTI_SUM, 5000, true },
    { KIND_ALL_REDUCE, TUTTI_F16, TUTTI_AVG, 777, true },
    { KIND_ALL_REDUCE, TUTTI_I64, TUTTI_PREMUL_SUM, 129, true },
    { KIND_ALL_REDUCE, TUTTI_U8, TUTTI_MAX, 1, false },
    { KIND_REDUCE, TUTTI_F64, TUTTI_PROD, 900, false },
    { KIND_REDUCE, TUTTI_BF16, TUTTI_PREMUL_SUM, 333, true },
    { KIND_REDUCE_SCATTER, TUTTI_F32, TUTTI_AVG, 1000, false },
    { KIND_REDUCE_SCATTER, TUTTI_I16, TUTTI_MIN, 65, true },
    { KIND_BROADCAST, TUTTI_U8, 0, 10001, false },
    { KIND_ALL_GATHER, TUTTI_F32, 0, 3000, false },
    { KIND_ALL_GATHER, TUTTI_U8, 0, 1003, true },
    { KIND_GATHER, TUTTI_U8, 0, 1003, true },
    { KIND_SCATTER, TUTTI_U8, 0, 1003, true },
    { KIND_SCATTER, TUTTI_F64, 0, 500, false },
    { KIND_ALL_TO_ALL, TUTTI_U16, 0, 700, false },
    { KIND_ALL_TO_ALL, TUTTI_U16, 0, 700, true },
    { KIND_SCAN, TUTTI_C64, TUTTI_SUM, 300, false },
    { KIND_SCAN, TUTTI_I32, TUTTI_SUM, 300, true },
    { KIND_EXSCAN, TUTTI_I32, TUTTI_AVG, 300, false },
    { KIND_ALL_REDUCE, TUTTI_F32, TUTTI_SUM, 0, false },
};
enum { DEEDS = sizeof deeds / sizeof deeds[0] };

static size_t width_of(tutti_type type)
{
    static const size_t width[] = { 1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8, 1, 8, 16, 1, 1 };
    return width[type];
}

static int call(const struct deed *d, const void *send, void *recv, tutti_comm *world,
                const tutti_call *how)
{
    int root = tutti_size(world) - 1;
    switch (d->kind) {
    case KIND_ALL_REDUCE: return tutti_all_reduce(send, recv, d->count, d->type, d->op, world, how);
    case KIND_REDUCE: return tutti_reduce(send, recv, d->count, d->type, d->op, root, world, how);
    case KIND_REDUCE_SCATTER:
        return tutti_reduce_scatter(send, recv, d->count, d->type, d->op, world, how);
    case KIND_BROADCAST: return tutti_broadcast(recv, d->count, d->type, root, world, how);
    case KIND_ALL_GATHER: return tutti_all_gather(send, recv, d->count, d->type, world, how);
    case KIND_GATHER: return tutti_gather(send, recv, d->count, d->type, root, world, how);
    case KIND_SCATTER: return tutti_scatter(send, recv, d->count, d->type, root, world, how);
    case KIND_ALL_TO_ALL: return tutti_all_to_all(send, recv, d->count, d->type, world, how);
    case KIND_SCAN: return tutti_scan(send, recv, d->count, d->type, d->op, world, how);
    case KIND_EXSCAN: return tutti_exscan(send, recv, d->count, d->type, d->op, world, how);
    default: return -EINVAL;
    }
}

/* Where in one room of bytes the two buffers begin: apart, or in place as the collective has it. */
static void lay_out(const struct deed *d, int rank, int size, size_t *send, size_t *recv)
{
    size_t block = d->count * width_of(d->type);
    *send = GUARD;
    *recv = ROOM / 2 + GUARD;
    if (!d->in_place)
        return;
    if (d->kind == KIND_ALL_GATHER || d->kind == KIND_GATHER) {
        *recv = GUARD;
        *send = *recv + (size_t)rank * block;
        if (d->kind == KIND_GATHER && rank != size - 1)
            *send = GUARD;
    } else if (d->kind == KIND_REDUCE_SCATTER || (d->kind == KIND_SCATTER && rank == size - 1))
        *recv = *send + (size_t)rank * block;
    else if (d->kind != KIND_SCATTER)
        *recv = *send;
}

static void fill(unsigned char *at, size_t bytes, uint64_t seed)
{
    for (size_t i = 0; i < bytes; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        at[i] = (unsigned char)(seed >> 56);
    }
}

struct room { CUdeviceptr at; unsigned char *host, *seen; };

static int enter_device(int rank)
{
    CUcontext context;
    return !case_cuda()
        || cu.cuDevicePrimaryCtxRetain(&context, rank % case_devices()) != 0
        || cu.cuCtxSetCurrent(context) != 0;
}

/* One collective with host buffers, the same with device buffers; all bytes of both rooms must
 * be alike. */
static int do_one(tutti_comm *world, int rank, const struct deed *d, struct room *room,
                  uint64_t seed, bool direct)
{
    size_t send, recv;
    uint64_t factor[2] = { 0x4000400040004000u ^ (uint64_t)rank, 3 };
    tutti_call how = { .factor = d->op == TUTTI_PREMUL_SUM ? factor : NULL };
    unsigned char *seen = room->seen;
    lay_out(d, rank, tutti_size(world), &send, &recv);
    fill(room->host, ROOM, seed + (uint64_t)rank);
    case_put(room->at, room->host, ROOM);
    CHECK_IS(call(d, room->host + send, room->host + recv, world, &how), 0);
    uint64_t mapped = load_relaxed64(&world->watch.mine->mapped);
    tutti_work *work = NULL;
    /* now and then by whoever comes by first, us or the progress thread */
    how.work = seed % 3000 ? NULL : &work;
    CHECK_IS(call(d, (void *)(uintptr_t)(room->at + send), (void *)(uintptr_t)(room->at + recv),
                  world, &how),
             0);
    if (work)
        CHECK_IS(tutti_wait(work, -1), 0);
    char words[300] = "";
    ipc_export_noted(ipc_export_if(world->world), words, sizeof words);
    if (load_relaxed64(&world->watch.mine->mapped) != (direct ? 2 * world->seq + 1 : mapped)) {
        fprintf(stderr, "rank %d: %s %s: '%s'\n", rank, kind_name(d->kind),
                direct ? "went through the staging" : "did not", words);
        return 1;
    }
    case_get(seen, room->at, ROOM);
    if (memcmp(seen, room->host, ROOM) != 0) {
        size_t i = 0;
        while (seen[i] == room->host[i])
            i++;
        fprintf(stderr, "rank %d: %s: first difference at byte %zu, send %zu recv %zu\n", rank,
                kind_name(d->kind), i, send, recv);
        return 1;
    }
    return 0;
}

/* The host's two: what is to come out, and what is seen. */
static int room_open(struct room *room)
{
    room->host = malloc(ROOM);
    room->seen = malloc(ROOM);
    return !room->host || !room->seen;
}

static void room_close(struct room *room)
{
    free(room->host);
    free(room->seen);
}

/* What this rank has open, but for the page by which each other device is proved. */
static int open_here(tutti_comm *world, int rank)
{
    int n = ipc_import_open_count(ipc_export_handles(ipc_export_if(world->world)));
    for (int d = 0; d < case_devices() && d < tutti_size(world); d++)
        n -= d != rank % case_devices();
    return n;
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* Calls that open or close memory of peers. */
static uint64_t opens_and_closes(void)
{
    static const char *const calls[] = { "cuIpcOpenMemHandle_v2", "cuIpcCloseMemHandle",
                                         "cuMemImportFromShareableHandle", "cuMemMap", "cuMemUnmap",
                                         "cuMemExportToShareableHandle", "cuIpcGetMemHandle" };
    uint64_t n = 0;
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        n += case_calls_of(calls[i]);
    return n;
}

/* Memory that does not stay open goes through the staging, which is opened once. */
static int each_deed(tutti_comm *world, int rank, struct room *room)
{
    uint64_t opened = 0;
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < DEEDS; i++)
            if (do_one(world, rank, &deeds[i], room, (uint64_t)i * 1000, deeds[i].count > 0))
                return ranks_wrong(__FILE__, __LINE__, "the same bytes", world);
        opened = round == 0 ? opens_and_closes() : opens_and_closes() - opened;
    }
    CHECK_IS(opened, 0);
    CHECK(open_here(world, rank) < tutti_size(world));
    return 0;
}

static int every(tutti_comm *world, int rank)
{
    struct room room;
    CHECK_IS(enter_device(rank), 0);
    CHECK_IS(room_open(&room), 0);
    CHECK_IS(cu.cuMemAlloc_v2(&room.at, ROOM), 0);
    if (each_deed(world, rank, &room))
        return 1;
    CHECK_IS(cu.cuMemFree_v2(room.at), 0);           /* at once: nobody has it open */
    room_close(&room);
    return 0;
}

static int every_kept(tutti_comm *world, int rank)
{
    struct room room;
    void *at;
    CHECK_IS(enter_device(rank), 0);
    CHECK_IS(room_open(&room), 0);
    CHECK_IS(tutti_cuda_alloc(&at, ROOM, -1, world), 0);
    room.at = (CUdeviceptr)(uintptr_t)at;
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < DEEDS; i++)
            if (do_one(world, rank, &deeds[i], &room, (uint64_t)i * 1000, deeds[i].count > 0))
                return ranks_wrong(__FILE__, __LINE__, "the same bytes", world);
    /* the buffers, and the staging for what overwrites in place */
    CHECK_IS(open_here(world, rank), 2 * (tutti_size(world) - 1));
    /* who frees before all have looked may have it back from a rank that still waits */
    CHECK_IS(tutti_barrier(world, NULL), 0);
    CHECK_IS(tutti_cuda_free(at, world), 0);
    CHECK_IS(tutti_cuda_free(at, world), -EINVAL);
    room_close(&room);
    return 0;
}

static void with(const char *name, const char *value)
{
    if (value)
        setenv(name, value, 1);
    else
        unsetenv(name);
}

static void road(const char *name)
{
    char text[600];
    snprintf(text, sizeof text, "%sdevice:-inf=%s", RINGS, name);
    with("TUTTI_ALGORITHM", text);
}

/* Memory of cuMemCreate, which is shared by descriptors. */
static int every_mapped(tutti_comm *world, int rank)
{
    enum { BLOCK = 2 << 20 };
    struct room room;
    CUmemAllocationProp prop = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
        .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 }
    };
    CUmemAccessDesc access = { { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
                               CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
    CUmemGenericAllocationHandle memory;
    CHECK_IS(enter_device(rank), 0);
    CHECK_IS(room_open(&room), 0);
    CHECK_IS(cu.cuCtxGetDevice(&prop.location.id), 0);
    access.location.id = prop.location.id;
    CHECK_IS(cu.cuMemCreate(&memory, BLOCK, &prop, 0), 0);
    CHECK_IS(cu.cuMemAddressReserve(&room.at, BLOCK, 0, 0, 0), 0);
    CHECK_IS(cu.cuMemMap(room.at, BLOCK, 0, memory, 0), 0);
    CHECK_IS(cu.cuMemSetAccess(room.at, BLOCK, &access, 1), 0);
    CHECK_IS(cu.cuMemRelease(memory), 0);
    bool kept = getenv("RESULT_KEPT") != NULL;
    if (kept)
        CHECK_IS(tutti_register((void *)(uintptr_t)room.at, BLOCK, world), 0);
    /* The first operation makes the boxes: it may go through host memory. */
    CHECK_IS(call(&deeds[0], (void *)(uintptr_t)room.at, (void *)(uintptr_t)(room.at + ROOM), world,
                  NULL),
             0);
    for (int i = 0; kept && i < DEEDS; i++)
        if (do_one(world, rank, &deeds[i], &room, (uint64_t)i * 1000, deeds[i].count > 0))
            return ranks_wrong(__FILE__, __LINE__, "the same bytes", world);
    if (!kept && each_deed(world, rank, &room))
        return 1;
    CHECK(open_here(world, rank) <= (kept ? 2 : 1) * (tutti_size(world) - 1));
    if (kept) {
        CHECK_IS(tutti_barrier(world, NULL), 0);
        CHECK_IS(tutti_unregister((void *)(uintptr_t)room.at, world), 0);
    }
    CHECK_IS(cu.cuMemUnmap(room.at, BLOCK), 0);
    CHECK_IS(cu.cuMemAddressFree(room.at, BLOCK), 0);
    room_close(&room);
    return 0;
}

/* What the caller's stream does before the call, at every rank, is done before anybody reads or
 * writes there; nothing waits for other streams. */
static int ordered(tutti_comm *world, int rank)
{
    enum { N = 20000 };
    CUdeviceptr from, send, recv, apart;
    CUstream stream, other;
    CHECK_IS(enter_device(rank), 0);
    CHECK_IS(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), 0);
    CHECK_IS(cu.cuStreamCreate(&other, CU_STREAM_NON_BLOCKING), 0);
    CHECK_IS(cu.cuMemAlloc_v2(&from, N * 4), 0);
    CHECK_IS(cu.cuMemAlloc_v2(&send, N * 4), 0);
    CHECK_IS(cu.cuMemAlloc_v2(&recv, N * 4), 0);
    CHECK_IS(cu.cuMemAlloc_v2(&apart, 4), 0);
    static int32_t values[N];
    /* a driver may wait for all that is under way when a kernel is loaded */
    CHECK_IS(tutti_all_reduce((void *)(uintptr_t)send, (void *)(uintptr_t)recv, N, TUTTI_I32,
                              TUTTI_SUM, world, NULL),
             0);
    case_hold(other, 1);                             /* what never ends concerns nobody */
    CHECK_IS(cu.cuMemsetD8Async(apart, 0, 4, other), 0);
    for (int round = 1; round <= 5; round++) {
        for (int i = 1; i < N; i++)
            values[i] = round * i + rank;
        case_put(from, values, sizeof values);
        CHECK_IS(cu.cuMemcpyDtoDAsync_v2(send, from, N * 4, stream), 0);
        CHECK_IS(cu.cuMemsetD8Async(recv, 0x77, N * 4, stream), 0);
        tutti_call how = { .stream = stream };
        CHECK_IS(tutti_all_reduce((void *)(uintptr_t)send, (void *)(uintptr_t)recv, N, TUTTI_I32,
                                  TUTTI_SUM, world, &how),
                 0);
        CHECK_IS(load_relaxed64(&world->watch.mine->mapped), 2 * world->seq + 1);
        int n = tutti_size(world);
        case_get(values, recv, sizeof values);
        for (int i = 1; i < N; i++)
            CHECK_IS(values[i], n * round * i + n * (n - 1) / 2);
    }
    case_hold(other, 0);
    CHECK_IS(cu.cuStreamSynchronize(other), 0);
    return 0;
}

static const char *const roads[] = { "leader", "peers" };

static void processes(void **state)
{
    (void)state;
    for (int r = 0; r < 2; r++)
        for (int devices = 1; devices <= 4; devices *= 2)
            for (int size = 2; size <= RANKS_MOST; size++) {
                char n[16];
                if (!getenv("TUTTI_PROVE") && (devices == 1 ? size == 3 : size != devices))
                    continue;
                snprintf(n, sizeof n, "%d", devices);
                with("FAKE_CUDA_DEVICES", n);
                road(roads[r]);
                assert_int_equal(ranks_run(size, every, 0), 0);
            }
    assert_int_equal(ranks_run(3, every_kept, 0), 0);
    with("FAKE_CUDA_DEVICES", NULL);
}

static void descriptors(void **state)
{
    (void)state;
    for (int r = 0; r < 2; r++) {
        road(roads[r]);
        assert_int_equal(ranks_run(2, every_mapped, 0), 0);
        with("FAKE_CUDA_DEVICES", "2");
        /* a machine may have one; each rank's context and kernels take it half a second and more */
        if (!case_real())
            assert_int_equal(ranks_run(4, every_mapped, 0), 0);
        with("RESULT_KEPT", "1");
        assert_int_equal(ranks_run(3, every_mapped, 0), 0);
        with("RESULT_KEPT", NULL);
        with("FAKE_CUDA_DEVICES", NULL);
    }
}

static int threads_of_two(void) { return ranks_run_threads(2, every); }
static int threads_of_four(void) { return ranks_run_threads(4, every); }
static int threads_kept(void) { return ranks_run_threads(3, every_kept); }

static void threads(void **state)
{
    (void)state;
    for (int r = 0; r < 2; r++) {
        road(roads[r]);
        PASSES(threads_of_two, NULL);
        PASSES(threads_of_two, "FAKE_CUDA_DEVICES=2", NULL);
        PASSES(threads_of_four, "FAKE_CUDA_DEVICES=2", NULL);
        PASSES(threads_kept, NULL);
    }
}

static void delayed(void **state)
{
    (void)state;
    with("FAKE_CUDA_DELAY_US", "300");
    with("FAKE_CUDA_DEVICES", "2");
    for (int r = 0; r < 2; r++) {
        road(roads[r]);
        assert_int_equal(ranks_run(3, every, 0), 0);
        with("FAKE_CUDA_DELAY_US", "10000");
        assert_int_equal(ranks_run(3, ordered, 0), 0);
        with("FAKE_CUDA_DELAY_US", "300");
    }
    with("FAKE_CUDA_DELAY_US", NULL);
    with("FAKE_CUDA_DEVICES", NULL);
}

int main(int argc, char **argv)
{
    (void)argc;
    cases_with(argv, "fake_cuda");
    const struct CMUnitTest tests[] = { cmocka_unit_test(processes), cmocka_unit_test(descriptors),
                                        cmocka_unit_test(threads), cmocka_unit_test(delayed) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
