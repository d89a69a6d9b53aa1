/* Mistakes that such code makes, made on purpose in src/gpu, one at a time: a driver for tests and
 * tests that find none of them prove nothing.
 *
 *   gpu_mistakes NAME LIFE HOW    the life goes well without the mistake, and with it the driver
 *                                 says HOW, or, "result", what comes is wrong
 *
 * A life is what some ranks do; it says "result" itself where what came is wrong. */
#include "gpu/mistakes.h"

#include "child_case.h"
#include "gpu/streams.h"
#include "group/comm.h"
#include "support/ranks.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <tutti_cuda.h>

enum { COUNT = 40000, BYTES_ = COUNT * 4, TRIES = 20 };

bool mistake_made(const char *name)
{
    const char *made = getenv("TUTTI_MISTAKE");
    return made && !strcmp(made, name);
}

static CUdeviceptr send, recv;
static CUstream own;

static void *address(CUdeviceptr at) { return (void *)(uintptr_t)at; }
static float *host_of(CUdeviceptr at) { return fake.fakePeek(at); }

static int wrong_result(void)
{
    fprintf(stderr, "misuse: result\n");
    return 1;
}

static int begin(void)
{
    signal(SIGSEGV, SIG_DFL);
    YES(case_cuda());
    OK(cu.cuMemAlloc_v2(&send, 2 * BYTES_));
    OK(cu.cuMemAlloc_v2(&recv, 2 * BYTES_));
    OK(cu.cuStreamCreate(&own, CU_STREAM_NON_BLOCKING));
    return 0;
}

static int end(tutti_comm *world)
{
    tutti_finalize(world);
    OK(cu.cuStreamDestroy_v2(own));
    OK(cu.cuMemFree_v2(send));
    OK(cu.cuMemFree_v2(recv));
    OK(cu.cuDevicePrimaryCtxRelease_v2(0));
    fflush(NULL);
    exit(0);
}

static void fill(CUdeviceptr at, size_t n, int value)
{
    for (size_t i = 0; i < n; i++)
        host_of(at)[i] = (float)value;
}

static int sums(tutti_comm *world, CUdeviceptr from, CUdeviceptr to, size_t n, int value,
                const tutti_call *call)
{
    int ranks = tutti_size(world);
    fill(from, n, value + tutti_rank(world));
    fill(to, n, -1);
    IS(tutti_all_reduce(address(from), address(to), n, TUTTI_F32, TUTTI_SUM, world, call), 0);
    for (size_t i = 0; i < n; i++)
        if (host_of(to)[i] != (float)(ranks * value + ranks * (ranks - 1) / 2))
            return wrong_result();
    return 0;
}

/* The caller's stream writes what is given until shortly before, and then the copies to and from
 * the staging last, too. */
static int staging(tutti_comm *world, int rank)
{
    tutti_call call = { 0 };
    (void)rank;
    setenv("FAKE_CUDA_DELAY_US", "3000", 1);
    setenv("FAKE_CUDA_PINNED", "require", 1);
    if (begin())
        return 1;
    for (int i = 0; i < 3; i++)
        if (sums(world, send, recv, 3, i, NULL) || sums(world, send, recv, COUNT, i, NULL))
            return 1;
    call.stream = own;
    fill(send, COUNT, 0);
    OK(cu.cuMemsetD8Async(send, 0, BYTES_, own));
    IS(tutti_all_reduce(address(send), address(recv), COUNT, TUTTI_F32, TUTTI_SUM, world, &call),
       0);
    return end(world);
}

/* One rank's device breaks, as a call says. */
static int broken(tutti_comm *world, int rank)
{
    if (begin())
        return 1;
    if (sums(world, send, recv, COUNT, 1, NULL))
        return 1;
    if (rank == 1) {
        setenv("FAKE_CUDA_END", "lax", 1);
        setenv("FAKE_CUDA_FAIL", "cuMemcpyDtoHAsync:*:700", 1);
    }
    IS(tutti_all_reduce(address(send), address(recv), COUNT, TUTTI_F32, TUTTI_SUM, world, NULL),
       -EIO);
    tutti_finalize(world);
    fflush(NULL);
    exit(0);
}

/* Two buffers that stay open, and parts of one that is registered for a while, then freed. */
static int reading(tutti_comm *world, int rank)
{
    void *a, *b;
    (void)rank;
    if (begin())
        return 1;
    IS(tutti_cuda_alloc(&a, BYTES_, 0, world), 0);
    IS(tutti_cuda_alloc(&b, BYTES_, 0, world), 0);
    IS(tutti_register(address(send), 2 * BYTES_, world), 0);
    IS(tutti_register(address(recv), 2 * BYTES_, world), 0);
    fill((CUdeviceptr)(uintptr_t)b, COUNT, 1000);
    for (int i = 0; i < 2; i++)
        if (sums(world, (CUdeviceptr)(uintptr_t)a, recv, COUNT, 5 + i, NULL)
            || sums(world, (CUdeviceptr)(uintptr_t)b, recv, COUNT, 9 + i, NULL))
            return 1;
    fill(send, 2 * COUNT, 77);
    if (sums(world, send + BYTES_, recv + BYTES_, COUNT, 3, NULL))
        return 1;
    IS(tutti_barrier(world, NULL), 0);
    IS(tutti_unregister(address(send), world), 0);
    IS(tutti_unregister(address(recv), world), 0);
    IS(tutti_barrier(world, NULL), 0);
    OK(cu.cuMemFree_v2(send));
    OK(cu.cuMemAlloc_v2(&send, 2 * BYTES_));
    return end(world);
}

/* Memory of ours is given back while the other one, which has it open, is in no call. */
static int idle(tutti_comm *world, int rank)
{
    void *at, *sum;
    setenv("FAKE_CUDA_MISUSE", "report", 1);    /* and go on, or the other one would wait for it */
    if (begin())
        return 1;
    IS(tutti_cuda_alloc(&at, BYTES_, 0, world), 0);
    IS(tutti_cuda_alloc(&sum, BYTES_, 0, world), 0);
    if (sums(world, (CUdeviceptr)(uintptr_t)at, (CUdeviceptr)(uintptr_t)sum, COUNT, 5, NULL))
        return 1;
    if (rank == 1) {
        YES(ranks_await(1, 1) == 0);            /* the other one is out of the call */
        IS(tutti_cuda_free(at, world), 0);
        ranks_say(0, 1);
    } else {
        ranks_say(1, 1);
        YES(ranks_await(0, 1) == 0);
    }
    return end(world);
}

static int thread_life(tutti_comm *world, int rank)
{
    CUdeviceptr at;
    (void)rank;
    YES(case_cuda());
    OK(cu.cuMemAlloc_v2(&at, BYTES_));
    for (int i = 0; i < COUNT; i++)
        host_of(at)[i] = (float)i;
    IS(tutti_all_reduce(address(at), address(at), COUNT, TUTTI_F32, TUTTI_SUM, world, NULL), 0);
    for (int i = 0; i < COUNT; i++)
        if (host_of(at)[i] != (float)(2 * i))
            return wrong_result();
    OK(cu.cuMemFree_v2(at));
    return 0;
}

/* A result is on its way to rank 0's buffer when the deadline has passed: after the return nothing
 * more comes. */
static CUstream held;

static void *lets_go(void *arg)
{
    if (ranks_await(0, 1) == 0)         /* the other one has returned: the operation has failed */
        fake.fakeHold(held, 0);
    return arg;
}

static int late(tutti_comm *world, int rank)
{
    pthread_t thread;
    tutti_call call = { .timeout_ms = 200 };
    if (begin() || sums(world, send, recv, 3, 1, NULL))
        return 1;
    if (rank == 0) {
        held = world->gpu.streams->side[STREAM_OUT].stream;
        fake.fakeHold(held, 1);
        YES(pthread_create(&thread, NULL, lets_go, NULL) == 0);
    }
    int r = tutti_all_reduce(address(send), address(recv), 3, TUTTI_F32, TUTTI_SUM, world, &call);
    if (rank == 0)
        fill(recv, 3, 4711);
    else
        ranks_say(0, 1);
    IS(r, -ETIMEDOUT);
    if (rank == 0) {
        YES(pthread_join(thread, NULL) == 0);
        OK(cu.cuStreamSynchronize(held));
        /* given up: this thread did not get to run for a second */
        if (!world->gpu.streams->given_up && host_of(recv)[1] != 4711.0f)
            return wrong_result();
    }
    return end(world);
}

/* ---- lives ----------------------------------------------------------------------------------- */

static int two(const char *rules, ranks_body *body)
{
    setenv("TUTTI_ALGORITHM", rules, 1);
    return ranks_run(2, body, 0);
}

static int staging_life(void) { return two("device:-inf=pinned", staging); }
static int broken_life(void) { return two("device:-inf=pinned", broken); }
static int reading_life(void) { return two("device:-inf=peers", reading); }
static int idle_life(void) { return two("device:-inf=peers", idle); }
static int late_life(void) { return two("device:-inf=pinned", late); }

static int threads_life(void)
{
    setenv("TUTTI_ALGORITHM", "device:-inf=peers", 1);
    return ranks_run_threads(2, thread_life);
}

static const struct { const char *name; case_body *body; } lives[] = {
    { "staging", staging_life }, { "broken", broken_life }, { "reading", reading_life },
    { "idle", idle_life },       { "late", late_life },     { "threads", threads_life },
};

static int found(case_body *life, const char *name, const char *how)
{
    char variable[100], line[120];
    snprintf(variable, sizeof variable, "TUTTI_MISTAKE=%s", name);
    snprintf(line, sizeof line, "misuse: %.99s", how);
    for (int i = 0; i < TRIES; i++) {                /* some need bad luck, too */
        int status = case_run(life, (const char *const[]){ variable, NULL });
        if (status && strstr(case_stderr(), line)) {
            printf("%s: found at try %d by '%s'\n", name, i + 1, line);
            return 0;
        }
        if (status)
            fprintf(stderr, "%s: ended with %d, and no '%s': %s\n", name, status, line,
                    case_stderr());
    }
    fprintf(stderr, "%s was not found\n", name);
    return 1;
}

int main(int argc, char **argv)
{
    char how[100] = "";
    cases_with(argv, "fake_cuda");
    for (int i = 3; i < argc; i++)
        snprintf(how + strlen(how), sizeof how - strlen(how), "%s%s", i > 3 ? " " : "", argv[i]);
    for (size_t i = 0; argc > 3 && i < sizeof lives / sizeof lives[0]; i++)
        if (!strcmp(lives[i].name, argv[2]))
            return case_passes(lives[i].body, (const char *const[]){ NULL })
                || found(lives[i].body, argv[1], how);
    fprintf(stderr, "gpu_mistakes NAME LIFE HOW (mistakes.txt)\n");
    return 2;
}
