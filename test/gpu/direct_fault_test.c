/* ctest: timeout=240 */
/* Where peers' device memory cannot be read, all ranks go through host memory, and one of them says
 * why; where only the callers' buffers cannot, through the staging on the devices. Where a device
 * fails, a rank dies, a deadline passes while memory is open, all ranks fail, and whoever returns
 * may free its memory: nobody has it open any more. */
#include "case_device.h"
#include "gpu/ipc_import.h"
#include "gpu/ipc_export.h"
#include "support/ranks.h"
#include "support/team.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <tutti_cuda.h>

#include <cmocka.h>

enum { COUNT = 40000, BYTES_ = COUNT * 4 };

static CUdeviceptr send, recv;
static const char *faults;                  /* FAKE_CUDA_FAIL of the rank `faulty`, or of all: -1 */
static int faulty;
static const char *note;                    /* what the note says, at `faulty` */

static bool leader;                                  /* the road; else peers */

static float *host_of(CUdeviceptr at) { return fake.fakePeek(at); }
static void *address(CUdeviceptr at) { return (void *)(uintptr_t)at; }

static int begin(tutti_comm *world, int rank, int device)
{
    CUcontext context;
    CHECK(case_cuda());
    CHECK_IS(cu.cuDevicePrimaryCtxRetain(&context, device), 0);
    CHECK_IS(cu.cuCtxSetCurrent(context), 0);
    CHECK_IS(cu.cuMemAlloc_v2(&send, BYTES_), 0);
    CHECK_IS(cu.cuMemAlloc_v2(&recv, BYTES_), 0);
    for (int i = 0; i < COUNT; i++)
        host_of(send)[i] = (float)(i + rank);
    if (faults && (faulty < 0 || faulty == rank))
        setenv("FAKE_CUDA_FAIL", faults, 1);
    return 0;
}

/* The same, of cuMemCreate. */
static int begin_mapped(tutti_comm *world, int rank)
{
    enum { BLOCK = 2 << 20 };
    CUmemAllocationProp prop = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
        .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 }
    };
    CUmemAccessDesc access = { { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
                               CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
    CUmemGenericAllocationHandle memory;
    CUdeviceptr from;
    CHECK_IS(begin(world, rank, 0), 0);
    from = send;
    CHECK_IS(cu.cuMemCreate(&memory, BLOCK, &prop, 0), 0);
    CHECK_IS(cu.cuMemAddressReserve(&send, BLOCK, 0, 0, 0), 0);
    CHECK_IS(cu.cuMemMap(send, BLOCK, 0, memory, 0), 0);
    CHECK_IS(cu.cuMemSetAccess(send, BLOCK, &access, 1), 0);
    memcpy(host_of(send), host_of(from), BYTES_);
    CHECK_IS(tutti_register(address(send), BYTES_, world), 0);
    CHECK_IS(tutti_register(address(recv), BYTES_, world), 0);
    return 0;
}

static int register_both(tutti_comm *world)
{
    CHECK_IS(tutti_register(address(send), BYTES_, world), 0);
    CHECK_IS(tutti_register(address(recv), BYTES_, world), 0);
    return 0;
}

static int unregister_both(tutti_comm *world)
{
    CHECK_IS(tutti_unregister(address(send), world), 0);
    CHECK_IS(tutti_unregister(address(recv), world), 0);
    return 0;
}

static int end(tutti_comm *world)
{
    unsetenv("FAKE_CUDA_FAIL");
    /* no more than the staging of the others */
    CHECK(ipc_import_open_count(ipc_export_handles(ipc_export_if(world->world)))
          < tutti_size(world));
    CHECK_IS(cu.cuMemFree_v2(send), 0);              /* at once, whatever the others do */
    CHECK_IS(cu.cuMemFree_v2(recv), 0);
    return 0;
}

static bool is_sum(tutti_comm *world)
{
    int n = tutti_size(world);
    for (int i = 0; i < COUNT; i++)
        if (host_of(recv)[i] != (float)(n * i + n * (n - 1) / 2))
            return false;
    return true;
}

static int all_reduce(tutti_comm *world, const tutti_call *how)
{
    memset(host_of(recv), 0, BYTES_);
    return tutti_all_reduce(address(send), address(recv), COUNT, TUTTI_F32, TUTTI_SUM, world, how);
}

/* ---- through host memory --------------------------------------------------------------------- */

static int stages(tutti_comm *world, int rank)
{
    char words[300] = "";
    CHECK_IS(begin(world, rank, 0), 0);
    for (int round = 0; round < 3; round++) {
        CHECK_IS(all_reduce(world, NULL), 0);
        CHECK((faulty >= 0 && faulty != rank)
              || load_relaxed64(&world->watch.mine->mapped) <= 2 * world->seq);
        CHECK(is_sum(world));
    }
    if (ipc_export_if(world->world))
        ipc_export_noted(ipc_export_if(world->world), words, sizeof words);
    if ((faulty < 0 || faulty == rank) && !strstr(words, note)) {
        fprintf(stderr, "rank %d: '%s' says nothing of '%s'\n", rank, words, note);
        return 1;
    }
    return end(world);
}

/* In place it cannot be; from then on, the staging on the devices is used. */
static int stages_mapped(tutti_comm *world, int rank)
{
    char words[300] = "";
    bool said = false;
    CHECK_IS(begin_mapped(world, rank), 0);
    for (int round = 0; round < 4; round++) {        /* the first one makes the boxes */
        CHECK_IS(all_reduce(world, NULL), 0);
        CHECK(is_sum(world));
        ipc_export_noted(ipc_export_if(world->world), words, sizeof words);
        said |= strstr(words, note) != NULL;
    }
    CHECK_IS(load_relaxed64(&world->watch.mine->mapped), 2 * world->seq + 1);
    CHECK(said || (faulty >= 0 && faulty != rank));
    return 0;
}

/* More than the boxes hold, while one rank takes nothing out: it does not give cards either; and
 * then again. */
static int full_boxes(tutti_comm *world, int rank)
{
    float *mine = malloc(BYTES_);
    CHECK_IS(begin_mapped(world, rank), 0);
    memcpy(mine, host_of(send), BYTES_);
    for (int round = 0; round < 700; round++)
        CHECK_IS(tutti_all_reduce(rank == 0 ? mine : address(send),
                                  rank == 0 ? mine + COUNT / 2 : address(recv), COUNT / 2,
                                  TUTTI_F32, TUTTI_SUM, world, NULL),
                 0);
    for (int round = 0; round < 3; round++)
        CHECK_IS(all_reduce(world, NULL), 0);
    CHECK(is_sum(world));
    CHECK_IS(load_relaxed64(&world->watch.mine->mapped), 2 * world->seq + 1);
    free(mine);
    return 0;
}

static void staged(const char *what, int at, const char *says)
{
    bool mapped = strstr(what, "Shareable");
    faults = what;
    faulty = at;
    note = says;
    assert_int_equal(ranks_run(3, mapped ? stages_mapped : stages, 0), 0);
    faults = NULL;
}

static int host_at_one(tutti_comm *world, int rank)
{
    CHECK_IS(begin(world, rank, 0), 0);
    float *mine = malloc(BYTES_), *sum = malloc(BYTES_);
    for (int round = 0; round < 3; round++) {
        if (rank == round) {
            memcpy(mine, host_of(send), BYTES_);
            CHECK_IS(tutti_all_reduce(mine, sum, COUNT, TUTTI_F32, TUTTI_SUM, world, NULL), 0);
            memcpy(host_of(recv), sum, BYTES_);
        } else
            CHECK_IS(all_reduce(world, NULL), 0);
        CHECK_IS(load_relaxed64(&world->watch.mine->mapped), 0);
        CHECK(is_sum(world));
    }
    CHECK_IS(all_reduce(world, NULL), 0);            /* and now it can be */
    CHECK_IS(load_relaxed64(&world->watch.mine->mapped), 2 * world->seq + 1);
    CHECK(is_sum(world));
    free(mine);
    free(sum);
    return end(world);
}

static int odd_address(tutti_comm *world, int rank)
{
    CHECK_IS(begin(world, rank, 0), 0);
    CUdeviceptr at = send + (rank == 1);
    memmove(fake.fakePeek(at), fake.fakePeek(send), BYTES_ - 4);
    CHECK_IS(tutti_all_reduce(address(at), address(recv), COUNT - 1, TUTTI_F32, TUTTI_SUM, world,
                              NULL),
             0);
    CHECK_IS(load_relaxed64(&world->watch.mine->mapped), 0);
    CHECK(host_of(recv)[100] == (float)(300 + 3));
    return end(world);
}

static int no_jit(tutti_comm *world, int rank)
{
    CHECK_IS(begin(world, rank, 0), 0);
    CHECK_IS(all_reduce(world, NULL), 0);
    CHECK_IS(load_relaxed64(&world->watch.mine->mapped), 0);
    CHECK(is_sum(world));
    /* copies need no kernel */
    CHECK_IS(tutti_broadcast(address(rank ? recv : send), COUNT, TUTTI_F32, 0, world, NULL), 0);
    CHECK_IS(load_relaxed64(&world->watch.mine->mapped), 2 * world->seq + 1);
    CHECK(rank == 0 || host_of(recv)[77] == 77.0f);
    return end(world);
}

static int cma_thread(tutti_comm *world, int rank)
{
    CUcontext context;
    CUdeviceptr at = 0;
    char words[300] = "";
    float *seen;
    CHECK(case_cuda());
    CHECK_IS(cu.cuDevicePrimaryCtxRetain(&context, rank), 0);
    CHECK_IS(cu.cuCtxSetCurrent(context), 0);
    CHECK_IS(cu.cuMemAlloc_v2(&at, BYTES_), 0);
    seen = host_of(at);
    for (int i = 0; i < COUNT; i++)
        seen[i] = (float)i;
    CHECK_IS(tutti_all_reduce(address(at), address(at), COUNT, TUTTI_F32, TUTTI_SUM, world, NULL),
             0);
    CHECK(seen[1000] == 2000.0f);
    CHECK_IS(load_relaxed64(&world->watch.mine->mapped), 2 * world->seq);
    ipc_export_noted(ipc_export_if(world->world), words, sizeof words);
    CHECK(strstr(words, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED"));
    CHECK_IS(cu.cuMemFree_v2(at), 0);
    return 0;
}

static int cma_threads(void) { return ranks_run_threads(2, cma_thread); }

static void other_roads(void **state)
{
    (void)state;
    staged("cuIpcOpenMemHandle:*:801", -1, "CUDA_ERROR_NOT_SUPPORTED");
    staged("cuIpcOpenMemHandle:*:801", 1, "CUDA_ERROR_NOT_SUPPORTED");
    staged("cuIpcOpenMemHandle:*:2", 2, "CUDA_ERROR_OUT_OF_MEMORY");
    staged("cuIpcGetMemHandle:*:801", 1, "CUDA_ERROR_NOT_SUPPORTED");
    staged("cuModuleLoadData:*:221", 0, "CUDA_ERROR_JIT_COMPILER_NOT_FOUND");
    staged("cuMemExportToShareableHandle:*:801", 1, "CUDA_ERROR_NOT_SUPPORTED");
    staged("cuMemImportFromShareableHandle:*:801", leader ? 0 : 2, "CUDA_ERROR_NOT_SUPPORTED");
    assert_int_equal(ranks_run(3, full_boxes, 0), 0);
    assert_int_equal(ranks_run(3, host_at_one, 0), 0);
    assert_int_equal(ranks_run(3, odd_address, 0), 0);
    faults = "cuModuleLoadData:*:221";
    faulty = 2;
    assert_int_equal(ranks_run(3, no_jit, 0), 0);
    faults = NULL;
    PASSES(cma_threads, "FAKE_CUDA_DEVICES=2", "FAKE_CUDA_PEER=0", NULL);
}

/* ---- failures -------------------------------------------------------------------------------- */

static int expected;

static int fails(tutti_comm *world, int rank)
{
    CHECK_IS(begin(world, rank, 0), 0);
    int error = all_reduce(world, NULL);
    CHECK_IS(error, rank != faulty && expected == -ENOMEM ? -ECANCELED : expected);
    CHECK_IS(load_relaxed64(&world->watch.mine->mapped), 2 * world->seq + 1);
    CHECK(strstr(tutti_explain(world), expected == -EIO ? "device" : "OUT_OF_MEM"));
    CHECK_IS(all_reduce(world, NULL), -ECANCELED);
    unsetenv("FAKE_CUDA_FAIL");
    /* its context is lost, and what was open in it with it */
    if (rank == faulty && expected == -EIO)
        return 0;
    return end(world);
}

static void failed(const char *what, int at, int error)
{
    faults = what;
    faulty = at;
    expected = error;
    assert_int_equal(ranks_run(3, fails, 0), 0);
    faults = NULL;
}

static void devices_fail(void **state)
{
    (void)state;
    failed("cuMemcpyDtoDAsync:1:700", 1, -EIO);
    failed("cuMemcpyDtoDAsync:1:700a", 2, -EIO);
    failed("cuLaunchKernel:1:719a", 0, -EIO);
    failed("cuLaunchKernel:1:2", 0, -ENOMEM);
}

/* A rank's copies are made to last: its stream begins nothing for that long. */
static int late(tutti_comm *world, int rank)
{
    tutti_call how = { .timeout_ms = 150 };
    if (rank == 1)
        setenv("FAKE_CUDA_DELAY_US", "400000", 1);
    CHECK_IS(begin(world, rank, 0), 0);
    int error = all_reduce(world, &how);
    if (error == 0)                         /* the delays are random: it may have been in time */
        CHECK(is_sum(world));
    else
        CHECK_IS(error, -ETIMEDOUT);
    return end(world);
}

static void *dies_when_mapped(void *arg)
{
    tutti_comm *world = arg;
    while (load_acquire64(&world->watch.mine->mapped)
               != 2 * load_acquire64(&world->watch.mine->arrival[1].seq) + 1
           && load_acquire64(&world->watch.mine->mapped)
               != 2 * load_acquire64(&world->watch.mine->arrival[0].seq) + 1)
        cpu_pause();
    ranks_die();
    return NULL;
}

static int killed(tutti_comm *world, int rank)
{
    pthread_t thread;
    setenv("FAKE_CUDA_DELAY_US", "3000", 1);
    CHECK_IS(begin(world, rank, 0), 0);
    if (rank == 2)
        CHECK_IS(pthread_create(&thread, NULL, dies_when_mapped, world), 0);
    int error;
    do {
        error = all_reduce(world, NULL);
        if (error == 0)
            CHECK(is_sum(world));
    } while (error == 0);
    CHECK_IS(error, -EOWNERDEAD);
    return end(world);
}

static void *aborts_when_mapped(void *arg)
{
    tutti_comm *world = arg;
    while (load_acquire64(&world->watch.mine->mapped) == 0)
        cpu_pause();
    tutti_comm_abort(world, "enough");
    return NULL;
}

static int aborted(tutti_comm *world, int rank)
{
    pthread_t thread;
    setenv("FAKE_CUDA_DELAY_US", "3000", 1);
    CHECK_IS(begin(world, rank, 0), 0);
    if (rank == 0)
        CHECK_IS(pthread_create(&thread, NULL, aborts_when_mapped, world), 0);
    int error;
    do
        error = all_reduce(world, NULL);
    while (error == 0);
    CHECK_IS(error, -ECANCELED);
    if (rank == 0)
        CHECK_IS(pthread_join(thread, NULL), 0);
    return end(world);
}

static void ranks_fail(void **state)
{
    (void)state;
    int rounds = ranks_many(2, 1);
    for (int i = 0; i < rounds; i++) {
        assert_int_equal(ranks_run(3, late, 0), 0);
        assert_int_equal(ranks_run(3, killed, 1u << 2), 0);
        assert_int_equal(ranks_run(3, aborted, 0), 0);
    }
}

/* ---- tutti_cuda_alloc, tutti_register -------------------------------------------------------- */

static int memory(tutti_comm *world, int rank)
{
    void *at = &at, *second;
    struct driver_pointer p;
    CHECK_IS(tutti_cuda_alloc(NULL, 10, -1, world), -EINVAL);
    CHECK_IS(tutti_cuda_alloc(&at, 10, -2, world), -EINVAL);
    CHECK(at == NULL && strstr(tutti_explain(world), "device is -2"));
    CHECK_IS(tutti_cuda_alloc(&at, 10, 9, world), -EINVAL);
    CHECK(strstr(tutti_explain(world), "no device 9"));
    CHECK_IS(tutti_cuda_alloc(&at, 0, -1, world), 0); /* no context yet: LOCAL_RANK, or this rank */
    CHECK_IS(driver_pointer(at, &p, NULL), 0);
    CHECK(p.memory == DRIVER_DEVICE && p.device == rank % 2 && p.bytes == 2 << 20
          && (uintptr_t)at % 256 == 0);
    CHECK_IS(tutti_cuda_alloc(&second, 10, !p.device, world), 0);
    CHECK_IS(driver_pointer(second, &p, NULL), 0);
    CHECK_IS(p.device, !(rank % 2));
    setenv("LOCAL_RANK", "1", 1);
    void *third;
    CHECK_IS(tutti_cuda_alloc(&third, 3 << 20, -1, world), 0);
    CHECK_IS(driver_pointer(third, &p, NULL), 0);
    CHECK(p.device == 1 && p.bytes == 4 << 20);
    CHECK(begin(world, rank, 0) == 0);
    CHECK_IS(tutti_cuda_free(third, world), 0);
    CHECK_IS(tutti_cuda_alloc(&third, 10, -1, world), 0);    /* device 0 is current now */
    CHECK_IS(driver_pointer(third, &p, NULL), 0);
    CHECK_IS(p.device, 0);
    CHECK_IS(tutti_register(address(send + 100), BYTES_ - 100, world), 0);
    CHECK_IS(tutti_register(address(send), 200, world), -EINVAL);
    CHECK(strstr(tutti_explain(world), "registered already"));
    CHECK_IS(tutti_register(address(send), BYTES_ + 1, world), -EINVAL);
    CHECK(strstr(tutti_explain(world), "ends 160000 bytes behind"));
    CHECK_IS(tutti_unregister(address(send), world), -EINVAL);
    CHECK_IS(tutti_unregister(address(send + 100), world), 0);
    CHECK_IS(tutti_cuda_free(address(send), world), -EINVAL);
    CHECK_IS(tutti_cuda_free((char *)at + 256, world), -EINVAL);
    CHECK_IS(tutti_cuda_free(NULL, world), 0);
    CHECK_IS(tutti_cuda_free(at, world), 0);
    CHECK_IS(tutti_cuda_free(second, world), 0);
    setenv("FAKE_CUDA_FAIL", "cuMemAlloc:*:2", 1);
    CHECK_IS(tutti_cuda_alloc(&second, 1 << 30, 0, world), -ENOMEM);
    CHECK(second == NULL && strstr(tutti_explain(world), "1 GiB"));
    CHECK_IS(tutti_cuda_alloc(&second, SIZE_MAX, 0, world), -ENOMEM);
    return end(world);                               /* the third one goes with the world */
}

static int registered(tutti_comm *world, int rank)
{
    CHECK_IS(begin(world, rank, 0), 0);
    struct ipc_import *handles;
    CHECK_IS(register_both(world), 0);
    for (int i = 0; i < 3; i++) {
        CHECK_IS(all_reduce(world, NULL), 0);
        CHECK(is_sum(world));
        handles = ipc_export_handles(ipc_export_if(world->world));
        /* the buffers of the others from which this rank folds, or copies what they have folded */
        CHECK_IS(ipc_import_open_count(handles), !leader ? 4 : rank ? 1 : 2);
    }
    CHECK_IS(tutti_barrier(world, NULL), 0);
    /* all do, and each gives back what the others wait for */
    CHECK_IS(unregister_both(world), 0);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    CHECK_IS(all_reduce(world, NULL), 0);
    return end(world);
}

/* One alone gives back, and the others close it between two looks at their work. */
static int registered_by_work(tutti_comm *world, int rank)
{
    CHECK_IS(begin(world, rank, 0), 0);
    CHECK_IS(register_both(world), 0);
    CHECK_IS(all_reduce(world, NULL), 0);
    if (rank == 1)
        CHECK_IS(unregister_both(world), 0);
    CHECK_IS(case_meet(world), 0);
    if (rank != 1)
        CHECK_IS(unregister_both(world), 0);
    CHECK_IS(case_meet(world), 0);
    return end(world);
}

/* A peer that frees nothing keeps it open, in any operation: unregister says so, and the memory is
 * not to be freed yet. */
static int registered_idle(tutti_comm *world, int rank)
{
    CHECK_IS(begin(world, rank, 0), 0);
    CHECK_IS(register_both(world), 0);
    CHECK_IS(all_reduce(world, NULL), 0);
    if (rank == 1) {
        CHECK_IS(ranks_await(1, 2), 0);
        CHECK_IS(tutti_unregister(address(send), world), -EBUSY);
        CHECK(strstr(tutti_explain(world), "still has it open"));
        ranks_say(0, 1);
    } else
        ranks_count(1);
    CHECK_IS(ranks_await(0, 1), 0);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    CHECK_IS(all_reduce(world, NULL), 0);            /* here nobody closes it */
    CHECK(is_sum(world));
    if (rank == 1)
        CHECK_IS(tutti_unregister(address(send), world), -EBUSY);
    else {
        CHECK_IS(ranks_await(2, 1), 0);
        CHECK_IS(tutti_cuda_free(NULL, world), 0);
    }
    ranks_count(2);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    if (rank == 1)
        CHECK_IS(tutti_unregister(address(send), world), 0);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    if (rank == 1)
        CHECK_IS(cu.cuMemFree_v2(send), 0);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    return 0;
}

/* What a peer has open when its owner leaves is waited for; a peer that is not heard of for a
 * second keeps it, and it is not freed. */
static int leaves(tutti_comm *world, int rank)
{
    void *at;
    CHECK_IS(begin(world, rank, 0), 0);
    CHECK_IS(tutti_cuda_alloc(&at, BYTES_, -1, world), 0);
    memset(host_of((CUdeviceptr)(uintptr_t)at), 0, BYTES_);
    CHECK_IS(tutti_all_reduce(at, at, COUNT, TUTTI_F32, TUTTI_SUM, world, NULL), 0);
    CHECK_IS(ipc_import_open_count(ipc_export_handles(ipc_export_if(world->world))),
             leader && rank ? 1 : 2);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    return 0;
}

static const char *job;
static bool one_is_idle;

static int leaves_named(tutti_comm *none, int rank, struct team *team)
{
    tutti_comm *world;
    tutti_options o = { .job = job, .rank = rank, .size = team->size };
    int r = tutti_init(&world, &o);
    if (none || r < 0 || leaves(world, rank))
        return 1;
    if (rank == 1 && one_is_idle && team_hear(team, rank, 1) < 0)
        return 1;
    r = tutti_finalize(world);
    team_say(team, rank, 1);
    return r < 0;
}

static void leaving(bool idle)
{
    job = ranks_job();
    one_is_idle = idle;
    struct team *team = team_start_named(3, leaves_named, false);
    for (int rank = 0; idle && rank < 3; rank += 2)
        assert_int_equal(team_await(team, rank, 1), 0);
    team_tell(team, 1, 1);
    assert_int_equal(team_end(team), 0);
    for (int rank = 0; rank < 3; rank++)
        assert_int_equal(team->status[rank], 0);
    team_free(team);
}

static void memory_of_ours(void **state)
{
    (void)state;
    setenv("FAKE_CUDA_DEVICES", "2", 1);
    assert_int_equal(ranks_run(2, memory, 0), 0);
    unsetenv("FAKE_CUDA_DEVICES");
    assert_int_equal(ranks_run(3, registered, 0), 0);
    assert_int_equal(ranks_run(3, registered_by_work, 0), 0);
    assert_int_equal(ranks_run(3, registered_idle, 0), 0);
    assert_int_equal(ranks_run(3, leaves, 0), 0);
    leaving(false);
    leaving(true);
}

int main(int argc, char **argv)
{
    (void)argc;
    if (case_needs_fake("fails at a chosen call"))
        return CASE_SKIP;
    cases_with(argv, "fake_cuda");
    setenv("TUTTI_ALGORITHM", "device:-inf=peers", 1);
    const struct CMUnitTest tests[] = { cmocka_unit_test(other_roads),
                                        cmocka_unit_test(devices_fail),
                                        cmocka_unit_test(ranks_fail),
                                        cmocka_unit_test(memory_of_ours) };
    int wrong = cmocka_run_group_tests(tests, NULL, NULL);
    setenv("TUTTI_ALGORITHM", "device:-inf=leader", 1);
    leader = true;
    return wrong + cmocka_run_group_tests(tests, NULL, NULL);
}
