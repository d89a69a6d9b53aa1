/* ctest: timeout=120 */
/* The process's list of devices. While the driver waits at a device's end for what the program has
 * under way there, other devices begin and end, and so does this one. */
#include "case_device.h"

#include "base/atomic.h"
#include "gpu/context.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <unistd.h>

#include <cmocka.h>

enum { LIFE_S = 20 };

static struct gpu *first;
static shared32 ending;

static void *closes(void *arg)
{
    store_release32(&ending, 1);
    gpu_close(first);                                /* waits for the stream that is held */
    store_release32(&ending, 2);
    return arg;
}

static int others_go_on(void)
{
    pthread_t thread;
    CUstream stream;
    CUdeviceptr at;
    struct gpu *other, *again;
    alarm(LIFE_S);                                   /* who hangs is killed, and the test sees it */
    YES(case_cuda());
    OK(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cu.cuMemAlloc_v2(&at, 4096));
    IS(gpu_open(0, &first, NULL), 0);
    case_hold(stream, 1);
    OK(cu.cuMemsetD8Async(at, 0, 64, stream));
    uint64_t unloads = case_calls_of("cuModuleUnload");
    IS(pthread_create(&thread, NULL, closes, NULL), 0);
    while (case_calls_of("cuModuleUnload") == unloads)
        sched_yield();
    IS(gpu_open(1, &other, NULL), 0);
    gpu_close(other);
    IS(load_acquire32(&ending), 1);
    case_hold(stream, 0);
    pthread_join(thread, NULL);
    IS(gpu_open(0, &again, NULL), 0);
    gpu_close(again);
    OK(cu.cuStreamDestroy_v2(stream));
    OK(cu.cuMemFree_v2(at));
    return 0;
}

static struct gpu *got[8];

static void *opens(void *arg)
{
    struct gpu **into = arg;
    return gpu_open(0, into, NULL) ? arg : NULL;
}

/* All who begin a device at once get the same one, and it is begun, filled and let go once. */
static int begun_at_once(void)
{
    enum { THREADS = sizeof got / sizeof got[0] };
    pthread_t thread[THREADS];
    void *failed;
    YES(case_cuda());
    for (int i = 0; i < THREADS; i++)
        IS(pthread_create(&thread[i], NULL, opens, &got[i]), 0);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], &failed);
        YES(!failed && got[i] == got[0]);
    }
    IS(case_calls_of("cuModuleLoadData"), 1);
    for (int i = 0; i < THREADS; i++)
        gpu_close(got[i]);
    IS(case_calls_of("cuModuleUnload"), 1);
    IS(case_calls_of("cuDevicePrimaryCtxRetain") - case_calls_of("cuDevicePrimaryCtxRelease_v2"),
       1);                                           /* the case's own */
    return 0;
}

static void one_device_stops_no_other(void **state)
{
    (void)state;
    PASSES(others_go_on, "FAKE_CUDA_DRAIN=loads", "FAKE_CUDA_DEVICES=2", NULL);
}

static void a_device_is_begun_once(void **state)
{
    (void)state;
    PASSES(begun_at_once, NULL);
}

int main(int argc, char **argv)
{
    (void)argc;
    if (case_needs_fake("waits at a device's end"))
        return CASE_SKIP;
    cases_with(argv, "fake_cuda");
    const struct CMUnitTest tests[] = { cmocka_unit_test(one_device_stops_no_other),
                                        cmocka_unit_test(a_device_is_begun_once) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
