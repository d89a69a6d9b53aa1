/* ctest: timeout=300 */
/* The program captures a graph while its collectives run: in another thread, as PyTorch does while
 * a bucket is under way, and in the thread that calls. Capture and result are whole. */
#include "case_device.h"
#include "host_compare.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <tutti_cuda.h>

#include <cmocka.h>

enum { MOST = 40000, GLOBAL = CU_STREAM_CAPTURE_MODE_GLOBAL };

static const size_t counts[] = { 3, 3000, MOST };

static void *address(CUdeviceptr at) { return (void *)(uintptr_t)at; }

/* A capture with a kernel's place in it: a fill of memory that nobody looks at. */
struct capture {
    CUstream stream;
    CUdeviceptr filled;
    CUcontext context;
    pthread_barrier_t barrier;
    CUresult begun, ended;
};

static void capture_begin(struct capture *c)
{
    c->begun = cu_more.cuStreamBeginCapture_v2(c->stream, GLOBAL);
    if (!c->begun)
        c->begun = cu.cuMemsetD8Async(c->filled, 1, 64, c->stream);
}

static void capture_end(struct capture *c)
{
    void *graph = NULL;
    c->ended = cu_more.cuStreamEndCapture(c->stream, &graph);
}

static void *captures(void *arg)
{
    struct capture *c = arg;
    if (cu.cuCtxSetCurrent(c->context) == 0)
        capture_begin(c);
    pthread_barrier_wait(&c->barrier);
    pthread_barrier_wait(&c->barrier);
    capture_end(c);
    return NULL;
}

static int reduce(tutti_comm *world, void *in, void *out, size_t n, bool as_work)
{
    tutti_work *work = NULL;
    tutti_call call = { .work = &work };
    int r = tutti_all_reduce(in, out, n, TUTTI_F32, TUTTI_SUM, world, as_work ? &call : NULL);
    if (r == 0 && as_work)
        r = tutti_wait(work, -1);
    if (r < 0)
        fprintf(stderr, "rank %d, %zu elements: %s\n", tutti_rank(world), n, tutti_explain(world));
    return r;
}

/* Everything that calls CUDA: operations of each size, also left under way, memory of ours and
 * memory that stays open, a comm's beginning and its end. */
static int everything(tutti_comm *world)
{
    tutti_comm *other;
    void *ours, *in = address(compare_in), *out = address(compare_out);
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        for (int as_work = 0; as_work < 2; as_work++)
            IS(reduce(world, in, out, counts[i], as_work), 0);
    IS(tutti_cuda_alloc(&ours, MOST * sizeof(float), -1, world), 0);
    IS(reduce(world, in, ours, MOST, false), 0);
    IS(tutti_cuda_free(ours, world), 0);
    IS(tutti_comm_split(world, 0, 0, &other), 0);
    IS(reduce(other, in, out, MOST, false), 0);
    IS(tutti_comm_free(other), 0);
    return 0;
}

static int looked_at(int ranks)
{
    case_get(compare_taken, compare_out, MOST * sizeof(float));
    for (int i = 0; i < MOST; i++)
        IS(compare_taken[i], ranks * (i % 1000) + ranks * (ranks - 1) / 2);
    return 0;
}

static int beside(tutti_comm *world, int rank, bool own_thread)
{
    struct capture c = { 0 };
    pthread_t thread;
    if (compare_begin(world, MOST, rank % case_devices()))
        return 1;
    for (int i = 0; i < MOST; i++)
        compare_given[i] = (float)(i % 1000 + rank);
    case_put(compare_in, compare_given, MOST * sizeof(float));
    OK(cu.cuStreamCreate(&c.stream, CU_STREAM_NON_BLOCKING));
    OK(cu.cuMemAlloc_v2(&c.filled, 4096));
    OK(cu.cuCtxGetCurrent(&c.context));
    pthread_barrier_init(&c.barrier, NULL, 2);
    if (own_thread)
        capture_begin(&c);
    else {
        IS(pthread_create(&thread, NULL, captures, &c), 0);
        pthread_barrier_wait(&c.barrier);
    }
    int bad = everything(world);
    if (own_thread)
        capture_end(&c);
    else {
        pthread_barrier_wait(&c.barrier);
        pthread_join(thread, NULL);
    }
    OK(c.begun);
    IS(bad, 0);
    OK(c.ended);
    if (looked_at(tutti_size(world)))
        return 1;
    OK(cu.cuStreamDestroy_v2(c.stream));
    OK(cu.cuMemFree_v2(c.filled));
    return compare_end(world);
}

static int in_another_thread(tutti_comm *world, int rank) { return beside(world, rank, false); }
static int in_this_thread(tutti_comm *world, int rank) { return beside(world, rank, true); }

static void try(ranks_body *body)
{
    static const char *const roads[] = { "pinned", "leader", "peers" };
    for (int i = 0; i < 3; i++)
        for (int devices = 1; devices < 3; devices++) {
            char rule[40], number[16];
            snprintf(rule, sizeof rule, "device:-inf=%s", roads[i]);
            snprintf(number, sizeof number, "%d", devices);
            setenv("TUTTI_ALGORITHM", rule, 1);
            setenv("FAKE_CUDA_DEVICES", number, 1);
            setenv("FAKE_CUDA_DELAY_US", "200", 1);
            assert_int_equal(ranks_run(2, body, 0), 0);
        }
}

static void another_thread_captures(void **state)
{
    (void)state;
    try(in_another_thread);
}

static void this_thread_captures(void **state)
{
    (void)state;
    try(in_this_thread);
}

int main(int argc, char **argv)
{
    (void)argc;
    cases_with(argv, "fake_cuda");
    const struct CMUnitTest tests[] = { cmocka_unit_test(another_thread_captures),
                                        cmocka_unit_test(this_thread_captures) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
