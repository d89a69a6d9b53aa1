/* ctest: timeout=180 needs=forks */
/* Device buffers and the caller's own work on the device: results come after what stood in the
 * stream, calls that cannot be right are refused. */
#include "case_device.h"
#include "host_compare.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { MOST = 700001 };

/* Each rank's stream holds back the copy that writes what it gives, until the work is under way at
 * all ranks. */
static int behind(tutti_comm *world, int rank, CUstream stream, size_t count)
{
    size_t bytes = count * sizeof(float);
    tutti_work *work = NULL;
    tutti_call call = { .work = &work, .stream = stream };
    float *from = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    YES(from != MAP_FAILED);
    for (size_t i = 0; i < count; i++)
        from[i] = (float)(rank + 1) + (float)(i % 7);
    OK(cu.cuMemHostRegister_v2(from, bytes, CU_MEMHOSTREGISTER_PORTABLE));
    case_fill(compare_in, 0, bytes);
    case_hold(stream, 1);
    OK(cu.cuMemcpyHtoDAsync_v2(compare_in, from, bytes, stream));
    IS(tutti_all_reduce((void *)(uintptr_t)compare_in, (void *)(uintptr_t)compare_out, count,
                        TUTTI_F32, TUTTI_SUM, world, &call),
       0);
    CHECK(ranks_count(0) < 1000);
    IS(tutti_test(work), -EAGAIN);
    case_hold(stream, 0);
    IS(tutti_wait(work, -1), 0);
    OK(cu.cuMemHostUnregister(from));
    case_get(from, compare_out, bytes);
    int n = tutti_size(world);
    for (size_t i = 0; i < count; i++)
        IS(from[i], n * (n + 1) / 2 + n * (int)(i % 7));
    munmap(from, bytes);
    return 0;
}

static int pending_work(tutti_comm *world, int rank)
{
    CUstream own, blocking;
    CUcontext before, after;
    if (compare_begin(world, MOST, 0))
        return 1;
    OK(cu.cuStreamCreate(&own, CU_STREAM_NON_BLOCKING));
    OK(cu.cuStreamCreate(&blocking, 0));
    OK(cu.cuCtxGetCurrent(&before));
    static const size_t counts[] = { 3, 3000, MOST };
    void *in = (void *)(uintptr_t)compare_in, *out = (void *)(uintptr_t)compare_out;
    /* What a first operation loads and registers may wait for all that is under way, in some
     * drivers: nothing of it is left to do when streams are held. */
    for (int i = 0; i < 3; i++)
        IS(tutti_all_reduce(in, out, counts[i], TUTTI_F32, TUTTI_SUM, world, NULL), 0);
    for (int i = 0; i < 3; i++)
        if (behind(world, rank, own, counts[i]) || behind(world, rank, blocking, counts[i])
            || behind(world, rank, NULL, counts[i]))
            return 1;
    OK(cu.cuCtxGetCurrent(&after));
    YES(before == after);
    OK(cu.cuStreamDestroy_v2(own));
    OK(cu.cuStreamDestroy_v2(blocking));
    return compare_end(world);
}

static void test_pending_work(void **state)
{
    (void)state;
    assert_int_equal(ranks_run(2, pending_work, 0), 0);
}

/* ---- refusals: one sentence, nothing touched ------------------------------------------------- */

#define REFUSED(result, say) \
    do { \
        IS(result, -EINVAL); \
        if (!strstr(tutti_explain(world), say)) { \
            fprintf(stderr, "%s:%d: '%s' says nothing of '%s'\n", __FILE__, __LINE__, \
                    tutti_explain(world), say); \
            return 1; \
        } \
    } while (0)

static int refusals(tutti_comm *world, int rank)
{
    CUstream stream;
    CUcontext other;
    CUdeviceptr there;
    float x[4] = { 1, 2, 3, 4 };
    size_t counts[2] = { 1, 1 };
    if (compare_begin(world, 1000, 0))
        return 1;
    void *in = (void *)(uintptr_t)compare_in, *out = (void *)(uintptr_t)compare_out;
    size_t all = 2 * (1000 + 5 * 8);
    OK(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    tutti_call call = { .stream = stream };
    fake.fakeCapture(stream, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    REFUSED(tutti_all_reduce(in, out, 10, TUTTI_F32, TUTTI_SUM, world, &call),
            "captured into a graph");
    fake.fakeCapture(stream, 0);
    REFUSED(tutti_all_reduce(x, x, 2, TUTTI_F32, TUTTI_SUM, world, &call),
            "call.stream is for device buffers");
    REFUSED(tutti_all_reduce(in, out, all + 1, TUTTI_F32, TUTTI_SUM, world, NULL),
            "memory of device 0");
    REFUSED(tutti_all_reduce(x, (char *)out + 4, all, TUTTI_F32, TUTTI_SUM, world, NULL),
            "receive buffer ends");
    REFUSED(tutti_send(in, 1, TUTTI_F32, !rank, 0, world, NULL), "memory of device 0");
    REFUSED(tutti_recv(in, 1, TUTTI_F32, !rank, 0, NULL, world, NULL), "memory of device 0");
    REFUSED(tutti_set("key", in, 4, world), "memory of device 0");
    OK(cu.cuDevicePrimaryCtxRetain(&other, 1));
    OK(cu.cuCtxPushCurrent_v2(other));
    OK(cu.cuMemAlloc_v2(&there, 4096));
    REFUSED(tutti_all_reduce(in, (void *)(uintptr_t)there, 10, TUTTI_F32, TUTTI_SUM, world, NULL),
            "devices 0 and 1");
    void *const to[2] = { out, (void *)(uintptr_t)there };
    REFUSED(tutti_all_gather_v(in, 1, to, counts, TUTTI_F32, world, NULL), "devices 0 and 1");
    OK(cu.cuMemFree_v2(there));
    OK(cu.cuCtxPopCurrent_v2(&other));
    OK(cu.cuDevicePrimaryCtxRelease_v2(1));
    /* None of that has done any harm, nor counted as an operation. */
    IS(tutti_all_reduce(in, out, all, TUTTI_F32, TUTTI_SUM, world, &call), 0);
    IS(tutti_all_reduce(x, x, 0, TUTTI_F32, TUTTI_SUM, world, &call), 0);
    OK(cu.cuStreamDestroy_v2(stream));
    return compare_end(world);
}

static void test_refusals(void **state)
{
    (void)state;
    NEEDS_FAKE("has two devices and calls a stream captured");
    setenv("FAKE_CUDA_DEVICES", "2", 1);
    assert_int_equal(ranks_run(2, refusals, 0), 0);
    unsetenv("FAKE_CUDA_DEVICES");
}

/* The memory of a parent in which CUDA had begun: the child is a rank, the memory is not
 * there for it. */
static int forked_rank(void)
{
    tutti_comm *world;
    IS(tutti_init(&world, &(tutti_options){ .rank = 0, .size = 1, .job = "gpu-fork" }), 0);
    REFUSED(tutti_all_reduce((void *)(uintptr_t)compare_in, (void *)(uintptr_t)compare_in, 1,
                             TUTTI_F32, TUTTI_SUM, world, NULL),
            "fork");
    float x = 1;
    IS(tutti_all_reduce(&x, &x, 1, TUTTI_F32, TUTTI_SUM, world, NULL), 0);
    IS(tutti_finalize(world), 0);
    return 0;
}

static int forks(void)
{
    int status = -1;
    YES(case_cuda());
    OK(cu.cuMemAlloc_v2(&compare_in, 4096));
    struct driver_pointer_probe { tutti_comm *world; } probe;
    IS(tutti_init(&probe.world, &(tutti_options){ .rank = 0, .size = 1, .job = "gpu-parent" }), 0);
    IS(tutti_all_reduce((void *)(uintptr_t)compare_in, (void *)(uintptr_t)compare_in, 1, TUTTI_F32,
                        TUTTI_SUM, probe.world, NULL),
       0);
    pid_t child = fork();
    if (child == 0)
        _exit(forked_rank());
    YES(waitpid(child, &status, 0) == child);
    IS(status, 0);
    IS(tutti_finalize(probe.world), 0);
    OK(cu.cuMemFree_v2(compare_in));
    return 0;
}

static void test_forks(void **state)
{
    (void)state;
    PASSES(forks, NULL);
}

int main(int argc, char **argv)
{
    (void)argc;
    cases_with(argv, "fake_cuda");
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_pending_work),
                                        cmocka_unit_test(test_refusals),
                                        cmocka_unit_test(test_forks) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
