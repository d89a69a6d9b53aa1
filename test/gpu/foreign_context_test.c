/* ctest: timeout=180 */
/* Memory of a context that a program has made beside the device's primary one, as PyCUDA does, and
 * calls with that context current, and in its streams: every road gives what the host gives. The
 * tests' driver kills the context of a kernel that reads such memory from another one. */
#include "case_device.h"
#include "host_compare.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <tutti_cuda.h>

enum { COUNT = 40000, SMALL = 300, LIFE_S = 60 };

static bool registered;                  /* of this test: peers may keep the buffers open */

/* A few of them behind a stream of the caller's. */
static int all_kinds(tutti_comm *world, CUstream stream)
{
    tutti_call call = { .stream = stream };
    for (int kind = 0; kind < R_KINDS; kind += stream ? 3 : 1)
        for (int large = 0; large < 2; large++) {
            struct compared round = { (enum compare_kind)kind, large ? COUNT : SMALL, false,
                                      ON_DEVICE, stream ? &call : NULL, false };
            if (compare_run(world, &round))
                return 1;
        }
    return 0;
}

static int beside_the_primary(tutti_comm *world, int rank)
{
    CUcontext own, now;
    CUstream stream;
    CUdeviceptr primary[2];
    int device = rank % case_devices();
    size_t bytes = (size_t)tutti_size(world) * (COUNT + 64) * sizeof(float);
    alarm(LIFE_S);
    if (compare_begin(world, COUNT, device))
        return 1;
    primary[0] = compare_in;
    primary[1] = compare_out;
    OK(cu_more.cuCtxCreate_v2(&own, 0, device));
    OK(cu.cuMemAlloc_v2(&compare_in, bytes));
    OK(cu.cuMemAlloc_v2(&compare_out, bytes));
    OK(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    void *in = (void *)(uintptr_t)compare_in, *out = (void *)(uintptr_t)compare_out;
    if (registered) {
        IS(tutti_register(in, bytes, world), 0);
        IS(tutti_register(out, bytes, world), 0);
    }
    if (all_kinds(world, NULL) || all_kinds(world, stream))
        return 1;
    IS(case_calls_of("cuLaunchKernel"), 0);
    if (registered) {
        IS(tutti_unregister(in, world), 0);
        IS(tutti_unregister(out, world), 0);
    }
    OK(cu.cuCtxGetCurrent(&now));
    YES(now == own);
    IS(tutti_barrier(world, NULL), 0);
    OK(cu.cuStreamDestroy_v2(stream));
    OK(cu.cuMemFree_v2(compare_in));
    OK(cu.cuMemFree_v2(compare_out));
    OK(cu_more.cuCtxDestroy_v2(own));
    compare_in = primary[0];
    compare_out = primary[1];
    return compare_end(world);
}

static void every_road(void **state)
{
    static const char *const roads[][2] = {
        { "pinned", "1" }, { "leader", "1" }, { "peers", "2" }
    };
    (void)state;
    for (int i = 0; i < 3; i++)
        for (int r = i == 2; r < 1 + (i > 0); r++) {
            char rule[80];
            snprintf(rule, sizeof rule, "device:-inf=%s;staged:-inf=%s", roads[i][0], roads[i][0]);
            setenv("TUTTI_ALGORITHM", rule, 1);
            setenv("FAKE_CUDA_DEVICES", roads[i][1], 1);
            registered = r;
            if (ranks_run(2, beside_the_primary, 0))
                fail_msg("%s, %s memory", rule, r ? "registered" : "plain");
        }
}

int main(int argc, char **argv)
{
    (void)argc;
    cases_with(argv, "fake_cuda");
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_road) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
