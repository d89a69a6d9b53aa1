/* ctest: timeout=240 */
/* What the program has under way on a device. A driver that loads a kernel waits for all of it, and
 * lets nobody else give it work meanwhile. If what is under way waits for what another rank starts
 * later, nothing ends any more. So once a device has been used no operation of a common type loads
 * anything, and none closes what a peer has freed. And a fold neither waits behind the program's
 * kernels nor leaves them no room. */
#include "case_device.h"
#include "host_compare.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <tutti_cuda.h>
#include <unistd.h>

#include <cmocka.h>

enum { COUNT = 40000, BYTES_ = COUNT * 8, LIFE_S = 60 };

static const struct { tutti_type type; size_t width; } types[] = {
    { TUTTI_F16, 2 }, { TUTTI_BF16, 2 }, { TUTTI_F32, 4 }, { TUTTI_F64, 8 }
};
static const tutti_op ops[] = { TUTTI_SUM, TUTTI_AVG, TUTTI_MIN, TUTTI_MAX, TUTTI_PROD };

static unsigned char given[BYTES_], taken[BYTES_], expected[BYTES_];     /* of a rank, a process */

/* Bits that are numbers of modest size in each of the types. */
static void fill(int rank)
{
    for (size_t i = 0; i < BYTES_; i++)
        given[i] = i % 2 ? 0x3c : (unsigned char)(i + (size_t)rank);
}

static int all_pairs(tutti_comm *world, void *at, CUstream stream)
{
    tutti_call call = { .stream = stream };
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++)
        for (size_t o = 0; o < sizeof ops / sizeof ops[0]; o++) {
            size_t n = COUNT, bytes = n * types[t].width;
            case_put((CUdeviceptr)(uintptr_t)at, given, bytes);
            IS(tutti_all_reduce(given, expected, n, types[t].type, ops[o], world, NULL), 0);
            int r = tutti_all_reduce(at, at, n, types[t].type, ops[o], world, &call);
            if (r < 0)
                fprintf(stderr, "type %zu, operation %zu: %s\n", t, o, tutti_explain(world));
            IS(r, 0);
            case_get(taken, (CUdeviceptr)(uintptr_t)at, bytes);
            IS(memcmp(taken, expected, bytes), 0);
        }
    return 0;
}

static int behind_others(tutti_comm *world, int rank)
{
    CUstream theirs, own;
    void *at;
    alarm(LIFE_S);                                   /* who hangs is killed, and the test sees it */
    if (compare_begin(world, COUNT, rank % case_devices()))
        return 1;
    fill(rank);
    OK(cu.cuStreamCreate(&theirs, CU_STREAM_NON_BLOCKING));
    OK(cu.cuStreamCreate(&own, CU_STREAM_NON_BLOCKING));
    IS(tutti_cuda_alloc(&at, BYTES_, rank % case_devices(), world), 0);
    case_put((CUdeviceptr)(uintptr_t)at, given, BYTES_);
    IS(tutti_all_reduce(at, at, 1, TUTTI_F32, TUTTI_SUM, world, NULL), 0);
    case_hold(theirs, 1);
    OK(cu.cuMemsetD8Async(compare_in, 0, 64, theirs));
    uint64_t loads = case_calls_of("cuModuleLoadData");
    IS(loads, case_counted(1));
    if (all_pairs(world, at, own))
        return 1;
    IS(case_calls_of("cuModuleLoadData"), case_counted(loads));
    case_hold(theirs, 0);
    OK(cu.cuStreamSynchronize(theirs));
    IS(tutti_cuda_free(at, world), 0);
    OK(cu.cuStreamDestroy_v2(theirs));
    OK(cu.cuStreamDestroy_v2(own));
    return compare_end(world);
}

/* A peer frees what this rank has open. To close it a driver waits for all that is under way here,
 * and that waits for what this rank does after its operations. So no operation on other memory
 * closes it, and no wait. */
static int peer_frees(tutti_comm *world, int rank)
{
    CUstream theirs;
    void *at[2];
    alarm(LIFE_S);
    if (compare_begin(world, COUNT, rank % case_devices()))
        return 1;
    OK(cu.cuStreamCreate(&theirs, CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < 2; i++) {
        IS(tutti_cuda_alloc(&at[i], BYTES_, rank % case_devices(), world), 0);
        case_fill((CUdeviceptr)(uintptr_t)at[i], 0, BYTES_);
        IS(tutti_all_reduce(at[i], at[i], COUNT, TUTTI_F32, TUTTI_SUM, world, NULL), 0);
    }
    if (rank == 1) {
        case_hold(theirs, 1);
        OK(cu.cuMemsetD8Async(compare_in, 0, 64, theirs));
    }
    IS(tutti_barrier(world, NULL), 0);
    if (rank == 0)
        IS(tutti_cuda_free(at[0], world), 0);
    for (int i = 0; i < 2; i++)
        IS(tutti_all_reduce(at[1], at[1], COUNT, TUTTI_F32, TUTTI_SUM, world, NULL), 0);
    IS(tutti_barrier(world, NULL), 0);
    uint64_t freed = case_calls_of("cuMemFree_v2");
    if (rank == 1) {
        case_hold(theirs, 0);
        OK(cu.cuStreamSynchronize(theirs));
        IS(tutti_cuda_free(NULL, world), 0);         /* closes it, so the peer can free it */
    }
    IS(tutti_barrier(world, NULL), 0);
    if (rank == 0) {
        IS(tutti_cuda_free(NULL, world), 0);
        IS(case_calls_of("cuMemFree_v2"), freed + case_counted(1));
    } else
        IS(tutti_cuda_free(at[0], world), 0);
    IS(tutti_cuda_free(at[1], world), 0);
    OK(cu.cuStreamDestroy_v2(theirs));
    return compare_end(world);
}

static void *frees_nothing(void *world)
{
    ranks_say(0, 1);
    return (void *)(intptr_t)tutti_cuda_free(NULL, world);
}

/* A thread that frees is in the driver, which waits for what is under way. The rank's other thread
 * goes on, and waits in barriers that need its CPU. */
static int thread_frees(tutti_comm *world, int rank)
{
    CUstream theirs;
    pthread_t thread;
    void *at, *freed = NULL;
    alarm(LIFE_S);
    if (compare_begin(world, COUNT, rank % case_devices()))
        return 1;
    OK(cu.cuStreamCreate(&theirs, CU_STREAM_NON_BLOCKING));
    IS(tutti_cuda_alloc(&at, BYTES_, rank % case_devices(), world), 0);
    case_fill((CUdeviceptr)(uintptr_t)at, 0, BYTES_);
    IS(tutti_all_reduce(at, at, COUNT, TUTTI_F32, TUTTI_SUM, world, NULL), 0);
    IS(tutti_barrier(world, NULL), 0);
    if (rank == 0) {
        case_hold(theirs, 1);
        OK(cu.cuMemsetD8Async(compare_in, 0, 64, theirs));
        IS(pthread_create(&thread, NULL, frees_nothing, world), 0);
    }
    IS(ranks_await(0, 1), 0);
    for (int i = 0; i < 200; i++) {
        struct timespec soon = { 0, rank ? 200000 : 0 };     /* the other one sleeps in its wait */
        nanosleep(&soon, NULL);
        IS(tutti_barrier(world, NULL), 0);
    }
    if (rank == 0) {
        case_hold(theirs, 0);
        IS(pthread_join(thread, &freed), 0);
        YES(!freed);
    }
    IS(tutti_cuda_free(at, world), 0);
    OK(cu.cuStreamDestroy_v2(theirs));
    return compare_end(world);
}

/* A device that is full of the program's kernels: ours come before those that wait, and leave them
 * the larger part of each of the driver's 4 multiprocessors. */
static int in_a_crowd(tutti_comm *world, int rank)
{
    enum { MOST = 4 * 512 / 256 };
    void *at;
    alarm(LIFE_S);
    if (compare_begin(world, COUNT, rank % case_devices()))
        return 1;
    fill(rank);
    IS(tutti_cuda_alloc(&at, 4 * BYTES_, rank % case_devices(), world), 0);
    for (int i = 0; i < 4; i++)
        case_put((CUdeviceptr)(uintptr_t)at + (CUdeviceptr)i * BYTES_, given, BYTES_);
    fake.fakeCrowd(1);
    IS(tutti_all_reduce(at, at, BYTES_, TUTTI_F32, TUTTI_SUM, world, NULL), 0);
    fake.fakeCrowd(0);
    unsigned grid = fake.fakeGrid();
    YES(grid <= MOST && (grid == MOST || rank > 0));
    IS(tutti_cuda_free(at, world), 0);
    return compare_end(world);
}

static void run(ranks_body *body, const char *rule, const char *devices)
{
    setenv("TUTTI_ALGORITHM", rule, 1);
    setenv("FAKE_CUDA_DRAIN", "loads", 1);
    setenv("FAKE_CUDA_DEVICES", devices, 1);
    assert_int_equal(ranks_run(2, body, 0), 0);
}

static void loads_wait_for_nobody(void **state)
{
    (void)state;
    run(behind_others, "device:-inf=leader", "1");
    run(behind_others, "device:-inf=peers", "2");
}

static void closes_wait_for_nobody(void **state)
{
    (void)state;
    run(peer_frees, "device:-inf=leader", "1");
    run(peer_frees, "device:-inf=peers", "2");
    run(thread_frees, "device:-inf=leader", "1");
}

static void kernels_neither_wait_nor_crowd(void **state)
{
    (void)state;
    NEEDS_FAKE("plays a full device");
    run(in_a_crowd, "device:-inf=leader", "1");
    run(in_a_crowd, "device:-inf=peers", "2");
}

int main(int argc, char **argv)
{
    (void)argc;
    cases_with(argv, "fake_cuda");
    const struct CMUnitTest tests[] = { cmocka_unit_test(loads_wait_for_nobody),
                                        cmocka_unit_test(closes_wait_for_nobody),
                                        cmocka_unit_test(kernels_neither_wait_nor_crowd) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
