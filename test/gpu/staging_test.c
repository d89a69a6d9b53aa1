/* ctest: timeout=300 */
/* Collectives on device memory by the road of staging: every kind, small and large, beside host
 * ranks, on two devices, as work, behind the caller's own work on the device. What the host's
 * collectives give is what must come out. */
#include "case_device.h"
#include "host_compare.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { LARGE = 300001 };

static const size_t sizes[] = { 0, 1, 5, 300, 9000, 70001, LARGE };

static bool can_lie_in_place(enum compare_kind kind)
{
    return kind >= R_REDUCE && kind <= R_EXSCAN;
}

/* In a comm's first operation with a device its pipelines are still small: then there are many
 * rounds, and every slot is used again. */
static int once(tutti_comm *world, const struct compared *round)
{
    tutti_comm *fresh;
    if (round->count < 70001)
        return compare_run(world, round);
    IS(tutti_comm_split(world, 0, tutti_rank(world), &fresh), 0);
    if (compare_run(fresh, round) || (round->count < LARGE && compare_run(fresh, round)))
        return 1;
    IS(tutti_comm_free(fresh), 0);
    return 0;
}

/* Where rank's areas are in the i-th round. */
typedef int where_of(int rank, int i);

static int everything(tutti_comm *world, int rank, where_of *where, int device, size_t most)
{
    int i = 0;
    if (compare_begin(world, most, device))
        return 1;
    for (int kind = 0; kind < R_KINDS; kind++)
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0] && sizes[s] <= most; s++)
            for (int in_place = 0; in_place < 1 + can_lie_in_place((enum compare_kind)kind);
                 in_place++, i++)
                if (once(world,
                         &(struct compared){ (enum compare_kind)kind, sizes[s], in_place,
                                             where(rank, i), NULL, i % 3 == 0 }))
                    return 1;
    return compare_end(world);
}

static int on_device(int rank, int i) { (void)rank; (void)i; return ON_DEVICE; }
static int mixed(int rank, int i) { return (rank + i) % 4; }

static int all_kinds(tutti_comm *world, int rank)
{
    return everything(world, rank, on_device, 0, LARGE);
}

static int all_kinds_small(tutti_comm *world, int rank)
{
    return everything(world, rank, on_device, 0, 9000);
}

static int mixed_ranks(tutti_comm *world, int rank)
{
    return everything(world, rank, mixed, rank == 1 ? -1 : 0, 70001);
}

static int two_devices(tutti_comm *world, int rank)
{
    return everything(world, rank, mixed, rank % 2, 70001);
}

static void test_all_kinds(void **state)
{
    (void)state;
    int bad = 0;
    setenv("FAKE_CUDA_PINNED", "require", 1);
    for (int n = 1; n <= 4; n++)
        bad += ranks_run(n, n < 4 ? all_kinds : all_kinds_small, 0);
    unsetenv("FAKE_CUDA_PINNED");
    assert_int_equal(bad, 0);
}

static void test_mixed_ranks(void **state)
{
    (void)state;
    setenv("FAKE_CUDA_DELAY_US", "200", 1);
    assert_int_equal(ranks_run(3, mixed_ranks, 0), 0);
    unsetenv("FAKE_CUDA_DELAY_US");
}

static void test_two_devices(void **state)
{
    (void)state;
    setenv("FAKE_CUDA_DEVICES", "2", 1);
    assert_int_equal(ranks_run(4, two_devices, 0), 0);
    unsetenv("FAKE_CUDA_DEVICES");
}

/* Comms that come and go, several at a time, each with staging of its own that is registered while
 * it lives. */
static int comms_come_and_go(tutti_comm *world, int rank)
{
    if (compare_begin(world, 70001, 0))
        return 1;
    for (int i = 0; i < 6; i++) {
        tutti_comm *some[3];
        for (int k = 0; k < 3; k++) {
            IS(tutti_comm_split(world, (rank + k) % 2, rank, &some[k]), 0);
            for (int n = 0; n < 3; n++)
                if (compare_run(some[k],
                                &(struct compared){
                                    (enum compare_kind)(R_ALL_REDUCE + (i + k + n) % 3),
                                    n == 1 ? 300 : 70001, false, ON_DEVICE, NULL, n == 2 }))
                    return 1;
        }
        if (compare_run(world,
                        &(struct compared){ R_REDUCE_SCATTER, 70001, false, ON_DEVICE, NULL,
                                            false }))
            return 1;
        for (int k = 0; k < 3; k++)
            IS(tutti_comm_free(some[k]), 0);
    }
    return compare_end(world);
}

static void test_comms_come_and_go(void **state)
{
    (void)state;
    setenv("FAKE_CUDA_PINNED", "require", 1);
    assert_int_equal(ranks_run(4, comms_come_and_go, 0), 0);
    unsetenv("FAKE_CUDA_PINNED");
}

/* Ranks that are threads share a process, and so what is registered with its driver. */
static int of_a_thread(tutti_comm *world, int rank)
{
    enum { N = 300000 };
    CUdeviceptr in, out;
    CUcontext context;
    int n = tutti_size(world);
    OK(cu.cuDevicePrimaryCtxRetain(&context, 0));
    OK(cu.cuCtxSetCurrent(context));
    OK(cu.cuMemAlloc_v2(&in, N * sizeof(float)));
    OK(cu.cuMemAlloc_v2(&out, N * sizeof(float)));
    for (int count = 3; count <= N; count *= 10) {
        float *x = fake.fakePeek(in);
        for (int i = 0; i < count; i++)
            x[i] = (float)(i + rank);
        IS(tutti_all_reduce((void *)(uintptr_t)in, (void *)(uintptr_t)out, (size_t)count, TUTTI_F32,
                            TUTTI_SUM, world, NULL),
           0);
        x = fake.fakePeek(out);
        for (int i = 0; i < count; i++)
            IS(x[i], i * n + n * (n - 1) / 2);
    }
    OK(cu.cuMemFree_v2(in));
    OK(cu.cuMemFree_v2(out));
    OK(cu.cuCtxSetCurrent(NULL));
    OK(cu.cuDevicePrimaryCtxRelease_v2(0));
    return 0;
}

static int threads(void)
{
    YES(case_cuda());
    IS(ranks_run_threads(3, of_a_thread), 0);
    OK(cu.cuDevicePrimaryCtxRelease_v2(0));
    return 0;
}

static void test_threads(void **state)
{
    (void)state;
    PASSES(threads, "FAKE_CUDA_PINNED=require", NULL);
}

int main(int argc, char **argv)
{
    (void)argc;
    if (case_needs_fake("fails at a chosen call"))
        return CASE_SKIP;
    cases_with(argv, "fake_cuda");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_kinds), cmocka_unit_test(test_mixed_ranks),
        cmocka_unit_test(test_two_devices), cmocka_unit_test(test_comms_come_and_go),
        cmocka_unit_test(test_threads)
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
