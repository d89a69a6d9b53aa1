/* ctest: timeout=180 labels=faults needs=vm_read */
/* What a driver refuses: the error and the sentence at each rank, and a device that can be used
 * behind it. A GPU that another process has for itself; memory that is freed before the operation
 * is over, or before the call; no memory on the device; no handles between processes, as in
 * containers that keep them apart. What is only a faster road ends nothing: the result is right,
 * and the reason is kept. */
#include "case_device.h"
#include "gpu/ipc_import.h"
#include "gpu/ipc_export.h"
#include "support/ranks.h"
#include "support/scratch.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <tutti_cuda.h>
#include <unistd.h>

#include <cmocka.h>

enum { RANKS = 3, ONE = 1, COUNT = 40000, BYTES_ = COUNT * 4, BLOCK = 2 << 20, LIFE_S = 60 };

static CUdeviceptr send, recv;

static float *host_of(CUdeviceptr at) { return fake.fakePeek(at); }
static void *address(CUdeviceptr at) { return (void *)(uintptr_t)at; }

static void fill(float *x, int rank)
{
    for (int i = 0; i < COUNT; i++)
        x[i] = (float)(i % 1000 + rank);
}

static bool is_sum(const float *x, int n)
{
    for (int i = 0; i < COUNT; i++)
        if (x[i] != (float)(n * (i % 1000) + n * (n - 1) / 2))
            return false;
    return true;
}

static int begin(void)
{
    alarm(LIFE_S);                              /* who hangs is killed, and the test sees it */
    signal(SIGSEGV, SIG_DFL);                   /* cmocka's would go on as the test in this child */
    YES(case_cuda());
    OK(cu.cuMemAlloc_v2(&send, BYTES_));
    OK(cu.cuMemAlloc_v2(&recv, BYTES_));
    return 0;
}

static int on_device(tutti_comm *comm)
{
    fill(host_of(send), tutti_rank(comm));
    memset(host_of(recv), 0xee, BYTES_);
    int r = tutti_all_reduce(address(send), address(recv), COUNT, TUTTI_F32, TUTTI_SUM, comm, NULL);
    return r || is_sum(host_of(recv), tutti_size(comm)) ? r : -EBADMSG;
}

static int on_host(tutti_comm *comm)
{
    static float x[COUNT];
    fill(x, tutti_rank(comm));
    int r = tutti_all_reduce(x, x, COUNT, TUTTI_F32, TUTTI_SUM, comm, NULL);
    return r || is_sum(x, tutti_size(comm)) ? r : -EBADMSG;
}

static int says(const char *words, const char *what, int rank)
{
    if (strstr(words, what))
        return 0;
    fprintf(stderr, "rank %d: '%s' says nothing of '%s'\n", rank, words, what);
    return 1;
}

/* The report of a failure of rank 1's device: who was it, says everybody else. */
static int explains(tutti_comm *comm, int rank, const char *what)
{
    return says(tutti_explain(comm), what, rank)
        || says(tutti_explain(comm), "device 0 (Fake GPU A", rank)
        || (rank != ONE && says(tutti_explain(comm), "rank 1", rank));
}

/* ---- exclusive: the GPU is another process's ------------------------------------------------- */

/* Memory of that GPU, which needs no context. */
static int make_without_context(void)
{
    CUmemAllocationProp prop = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 }
    };
    CUmemAccessDesc access = { { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
                               CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
    CUmemGenericAllocationHandle memory;
    OK(cu.cuMemCreate(&memory, BLOCK, &prop, 0));
    OK(cu.cuMemAddressReserve(&send, BLOCK, 0, 0, 0));
    OK(cu.cuMemMap(send, BLOCK, 0, memory, 0));
    OK(cu.cuMemSetAccess(send, BLOCK, &access, 1));
    OK(cu.cuMemRelease(memory));
    recv = send + BLOCK / 2;
    return 0;
}

static int exclusive(tutti_comm *world, int rank)
{
    static const char taken[] = "cuDevicePrimaryCtxRetain: CUDA_ERROR_DEVICE_UNAVAILABLE (46)";
    tutti_comm *left;
    void *at = &at;
    alarm(LIFE_S);
    if (rank == 0) {
        YES(begin() == 0);
        ranks_say(0, 1);                             /* it has the GPU */
    }
    YES(ranks_await(0, 1) == 0);
    if (rank == ONE) {
        YES(!case_cuda());
        YES(make_without_context() == 0);
        IS(tutti_cuda_alloc(&at, BYTES_, 0, world), -EBUSY);
        YES(!at && !says(tutti_explain(world), taken, rank));
    }
    YES(tutti_barrier(world, NULL) == 0);
    IS(rank == 2 ? on_host(world) : on_device(world), -EIO);
    YES(!explains(world, rank, taken));
    IS(tutti_comm_shrink(world, &left), 0);
    IS(tutti_size(left), RANKS);
    IS(on_host(left), 0);
    IS(rank == 0 ? on_device(left) : on_host(left), 0);      /* who has it works on with it */
    IS(tutti_comm_free(left), 0);
    tutti_finalize(world);
    if (rank == 0) {
        OK(cu.cuMemFree_v2(send));
        OK(cu.cuMemFree_v2(recv));
        OK(cu.cuDevicePrimaryCtxRelease_v2(0));
    } else if (rank == ONE) {
        OK(cu.cuMemUnmap(send, BLOCK));
        OK(cu.cuMemAddressFree(send, BLOCK));
    }
    fflush(NULL);
    exit(0);
}

static void test_exclusive(void **state)
{
    (void)state;
    char seat[64], lock[72];
    int fd = mkstemp(scratch_name(seat, sizeof seat, "seat"));
    assert_true(fd >= 0);
    close(fd);
    snprintf(lock, sizeof lock, "%s.0", seat);
    setenv("FAKE_CUDA_EXCLUSIVE", seat, 1);
    int wrong = ranks_run(RANKS, exclusive, 0);
    unsetenv("FAKE_CUDA_EXCLUSIVE");
    unlink(lock);
    unlink(seat);
    assert_int_equal(wrong, 0);
}

/* ---- freed too early ------------------------------------------------------------------------- */

/* In the caller's stream stands what holds the operation up: meanwhile its buffer is freed, by an
 * allocator that waits for nothing, before anybody could read it. */
static int freed_in_operation(tutti_comm *world, int rank)
{
    CUstream stream;
    tutti_work *work = NULL;
    tutti_call call = { .work = &work };
    tutti_comm *left;
    setenv("FAKE_CUDA_DRAIN", "0", 1);
    YES(begin() == 0);
    IS(on_device(world), 0);
    OK(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    if (rank == ONE) {
        fake.fakeHold(stream, 1);
        OK(cu.cuMemsetD8Async(recv, 0, 4, stream));
        call.stream = stream;
    }
    YES(rank == ONE || ranks_await(0, 1) == 0);
    IS(tutti_all_reduce(address(send), address(recv), COUNT, TUTTI_F32, TUTTI_SUM, world, &call),
       0);
    if (rank == ONE) {
        OK(cu.cuMemFree_v2(send));
        ranks_say(0, 1);
        fake.fakeHold(stream, 0);
    }
    IS(tutti_wait(work, -1), -EIO);
    YES(!explains(world, rank, "CUDA_ERROR_INVALID_VALUE (1)"));
    if (rank == ONE)
        OK(cu.cuMemAlloc_v2(&send, BYTES_));
    IS(tutti_comm_shrink(world, &left), 0);
    IS(on_device(left), 0);
    IS(on_host(left), 0);
    IS(tutti_comm_free(left), 0);
    OK(cu.cuStreamDestroy_v2(stream));
    OK(cu.cuMemFree_v2(send));
    OK(cu.cuMemFree_v2(recv));
    return 0;
}

/* A call with memory that is no more: refused where it is made, and no operation has begun. */
static int freed_before_call(tutti_comm *world, int rank)
{
    YES(begin() == 0);
    IS(on_device(world), 0);
    if (rank == ONE) {
        OK(cu.cuMemFree_v2(send));
        IS(tutti_all_reduce(address(send), address(recv), COUNT, TUTTI_F32, TUTTI_SUM, world, NULL),
           -EINVAL);
        YES(!says(tutti_explain(world),
                  "the send buffer is memory that neither the CPU nor a GPU of this process can "
                  "reach",
                  rank));
        OK(cu.cuMemAlloc_v2(&send, BYTES_));
    }
    IS(on_device(world), 0);
    OK(cu.cuMemFree_v2(send));
    OK(cu.cuMemFree_v2(recv));
    return 0;
}

/* Registered, lent, and freed without a word; then something new at that address. Its owner does
 * wrong, and nobody gets wrong results. */
static int freed_while_lent(tutti_comm *world, int rank)
{
    YES(begin() == 0);
    IS(tutti_register(address(recv), BYTES_, world), 0);
    for (int round = 0; round < 3; round++) {
        CUdeviceptr was = send;
        IS(tutti_register(address(send), BYTES_, world), 0);
        IS(on_device(world), 0);
        IS(tutti_barrier(world, NULL), 0);
        if (rank == ONE) {
            OK(cu.cuMemFree_v2(send));
            OK(cu.cuMemAlloc_v2(&send, BYTES_));
            IS(send, was);
        } else
            IS(tutti_unregister(address(send), world), 0);
        IS(case_meet(world), 0);
        IS(on_device(world), 0);
        IS(on_device(world), 0);
    }
    IS(tutti_barrier(world, NULL), 0);
    IS(tutti_unregister(address(recv), world), 0);
    IS(case_meet(world), 0);
    OK(cu.cuMemFree_v2(send));
    OK(cu.cuMemFree_v2(recv));
    return 0;
}

static const char *const roads[] = { "device:-inf=pinned", "device:-inf=leader",
                                     "device:-inf=peers" };
enum { ROADS = 3 };

static void test_freed(void **state)
{
    (void)state;
    for (int i = 0; i < ROADS; i++) {
        setenv("TUTTI_ALGORITHM", roads[i], 1);
        assert_int_equal(ranks_run(RANKS, freed_in_operation, 0), 0);
        assert_int_equal(ranks_run(RANKS, freed_before_call, 0), 0);
        setenv("FAKE_CUDA_MISUSE", "report", 1);    /* that driver says what the owner does wrong */
        setenv("FAKE_CUDA_END", "lax", 1);
        assert_int_equal(ranks_run(RANKS, freed_while_lent, 0), 0);
        unsetenv("FAKE_CUDA_MISUSE");
        unsetenv("FAKE_CUDA_END");
    }
    unsetenv("TUTTI_ALGORITHM");
}

/* ---- no memory, no handles ------------------------------------------------------------------- */

/* expected: rank 1's, others' of a failure are -ECANCELED for -ENOMEM. 0: there is another road,
 * and rank 1 has noted why. */
struct expected { const char *fault; int expected; const char *says; };
static const struct expected *refusal;

static int refused(tutti_comm *world, int rank)
{
    char words[300] = "";
    tutti_comm *comm = world;
    YES(begin() == 0);
    if (rank == ONE)
        setenv("FAKE_CUDA_FAIL", refusal->fault, 1);
    int r = on_device(world);
    IS(r, rank == ONE || !refusal->expected ? refusal->expected : -ECANCELED);
    unsetenv("FAKE_CUDA_FAIL");
    if (r < 0) {
        YES(!explains(world, rank, refusal->says));
        IS(tutti_comm_shrink(world, &comm), 0);
    } else if (rank == ONE && refusal->says[0]) {
        if (ipc_export_if(world->world))
            ipc_export_noted(ipc_export_if(world->world), words, sizeof words);
        YES(strstr(tutti_explain(comm), refusal->says) || !says(words, refusal->says, rank));
    }
    IS(on_device(comm), 0);
    IS(on_host(comm), 0);
    IS(on_device(comm), 0);
    if (comm != world)
        IS(tutti_comm_free(comm), 0);
    tutti_finalize(world);
    OK(cu.cuMemFree_v2(send));
    OK(cu.cuMemFree_v2(recv));
    OK(cu.cuDevicePrimaryCtxRelease_v2(0));
    fflush(NULL);
    exit(0);
}

static void all_refused(const char *rule, const struct expected *all, size_t n)
{
    setenv("TUTTI_ALGORITHM", rule, 1);
    for (size_t i = 0; i < n; i++) {
        refusal = &all[i];
        if (ranks_run(RANKS, refused, 0))
            fail_msg("%s by %s", refusal->fault, rule);
    }
    unsetenv("TUTTI_ALGORITHM");
}

static void test_staging(void **state)
{
    (void)state;
    static const struct expected of_staging[] = {
        { "cuStreamCreateWithPriority:1:2", -ENOMEM,
          "cuStreamCreateWithPriority: CUDA_ERROR_OUT_OF_MEMORY (2)" },
        { "cuStreamCreateWithPriority:2:2", -ENOMEM,
          "cuStreamCreateWithPriority: CUDA_ERROR_OUT_OF_MEMORY (2)" },
        { "cuStreamWriteValue32:1:801,cuEventCreate:3:2", -ENOMEM,
          "cuEventCreate: CUDA_ERROR_OUT_OF_MEMORY (2): out of memory" },
        { "cuMemcpyDtoHAsync:1:2", -ENOMEM,
          "cuMemcpyDtoHAsync: CUDA_ERROR_OUT_OF_MEMORY (2): out of memory" },
        { "cuMemcpy2DAsync:1:2", -ENOMEM,
          "cuMemcpy2DAsync: CUDA_ERROR_OUT_OF_MEMORY (2): out of memory" },
        /* copies take longer from memory that is not pinned, and that is all */
        { "cuMemHostRegister:*:2", 0, "cuMemHostRegister: CUDA_ERROR_OUT_OF_MEMORY (2)" },
        { "cuMemHostRegister:*:304", 0, "cuMemHostRegister: CUDA_ERROR_OPERATING_SYSTEM (304)" },
    };
    all_refused(roads[0], of_staging, sizeof of_staging / sizeof of_staging[0]);
}

static void test_handles(void **state)
{
    (void)state;
    static const struct expected of_handles[] = {
        { "cuIpcGetMemHandle:*:801", 0, "cuIpcGetMemHandle: CUDA_ERROR_NOT_SUPPORTED (801)" },
        { "cuIpcOpenMemHandle:*:801", 0,
          "s memory: cuIpcOpenMemHandle: CUDA_ERROR_NOT_SUPPORTED (801)" },
        { "cuIpcOpenMemHandle:*:304", 0,
          "s memory: cuIpcOpenMemHandle: CUDA_ERROR_OPERATING_SYSTEM (304)" },
        { "cuIpcOpenMemHandle:*:1", 0,
          "s memory: cuIpcOpenMemHandle: CUDA_ERROR_INVALID_VALUE (1)" },
        { "cuIpcOpenMemHandle:*:2", 0,
          "s memory: cuIpcOpenMemHandle: CUDA_ERROR_OUT_OF_MEMORY (2)" },
        { "cuModuleLoadData:*:2", 0, "cuModuleLoadData: CUDA_ERROR_OUT_OF_MEMORY (2)" },
        { "cuLaunchKernel:1:2", -ENOMEM,
          "cuLaunchKernel: CUDA_ERROR_OUT_OF_MEMORY (2): out of memory" },
        { "cuMemcpyDtoDAsync:1:2", -ENOMEM,
          "cuMemcpyDtoDAsync: CUDA_ERROR_OUT_OF_MEMORY (2): out of memory" },
    };
    all_refused(roads[2], of_handles, sizeof of_handles / sizeof of_handles[0]);
}

static int no_room(tutti_comm *world, int rank)
{
    void *at = &at;
    (void)rank;
    YES(begin() == 0);
    setenv("FAKE_CUDA_FAIL", "cuMemAlloc:*:2", 1);
    IS(tutti_cuda_alloc(&at, 3 << 20, 0, world), -ENOMEM);
    YES(!at
        && !says(tutti_explain(world), "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY (2): out of memory",
                 rank));
    unsetenv("FAKE_CUDA_FAIL");
    IS(tutti_cuda_alloc(&at, 3 << 20, 0, world), 0);
    IS(on_device(world), 0);
    IS(tutti_cuda_free(at, world), 0);
    OK(cu.cuMemFree_v2(send));
    OK(cu.cuMemFree_v2(recv));
    return 0;
}

static void test_no_room(void **state)
{
    (void)state;
    assert_int_equal(ranks_run(RANKS, no_room, 0), 0);
}

int main(int argc, char **argv)
{
    (void)argc;
    if (case_needs_fake("refuses what it is told to"))
        return CASE_SKIP;
    cases_with(argv, "fake_cuda");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exclusive), cmocka_unit_test(test_freed),
        cmocka_unit_test(test_staging), cmocka_unit_test(test_handles),
        cmocka_unit_test(test_no_room)
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
