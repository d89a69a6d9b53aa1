/* ctest: timeout=120 */
/* The kernels of a context: loaded once, whoever asks; refused in words where the driver cannot
 * compile; launched over any length. */
#include "case_device.h"
#include "device_fixture.h"

#include "gpu/driver.h"
#include "gpu/kernels.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct kernels k;
static char words[512];

#define WORDS (words[0] = 0, &TEXT_IN(words))

static int sums(void)
{
    static const uint64_t counts[] = {
        0, 1, 3, 63, 64, 255, 256, 1000, 1024, 4095, 4096, 4099, BYTES / 4
    };
    if (fixture_begin(true))
        return 1;
    float *x = (float *)(void *)host, *y = (float *)(void *)(host + BYTES);
    kernels_begin(&k);
    for (int i = 0; i < BYTES / 4; i++)
        x[i] = (float)i * 0.37f;
    OK(cu.cuMemcpyHtoDAsync_v2(dev, x, BYTES, s1));
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
        uint64_t n = counts[c];
        struct kernel_fold fold = { .out = dev2, .count = n, .inputs = 3, .in = { dev, dev, dev } };
        OK(cu.cuMemsetD8Async(dev2, 0x77, BYTES, s1));
        IS(kernels_fold(&k, &cu, TUTTI_F32, TUTTI_SUM, &fold, s1, WORDS), 0);
        OK(cu.cuMemcpyDtoHAsync_v2(y, dev2, BYTES, s1));
        OK(cu.cuStreamSynchronize(s1));
        for (uint64_t i = 0; i < n; i++)
            YES(y[i] == x[i] + x[i] + x[i]);
        for (size_t i = 4 * n; i < BYTES; i++)
            IS(host[BYTES + i], 0x77);
    }
    kernels_end(&k, &cu);
    return fixture_end();
}

/* Many blocks, each with many tiles; the last one is cut off. In place, and where nothing
 * is aligned. */
static int long_sums(void)
{
    enum { N = (1 << 19) + 77 };
    CUdeviceptr at;
    if (fixture_begin(true))
        return 1;
    kernels_begin(&k);
    OK(cu.cuMemAlloc_v2(&at, 2 * N + 64));
    uint16_t *x = fake.fakePeek(at);
    for (unsigned off = 0; off < 2; off++) {
        for (unsigned i = 0; i < N + 32; i++)
            x[i] = (uint16_t)(i * 7);
        struct kernel_fold fold = {
            .out = at + 2 * off, .count = N, .inputs = 2, .in = { at + 2 * off, at + 2 * off }
        };
        IS(kernels_fold(&k, &cu, TUTTI_U16, TUTTI_SUM, &fold, s1, WORDS), 0);
        OK(cu.cuStreamSynchronize(s1));
        for (unsigned i = 0; i < N + 32; i++)
            IS(x[i], (uint16_t)(i * (i >= off && i < off + N ? 14 : 7)));
    }
    kernels_end(&k, &cu);
    OK(cu.cuMemFree_v2(at));
    return fixture_end();
}

static int refusals(void)
{
    if (fixture_begin(true))
        return 1;
    kernels_begin(&k);
    CUfunction f;
    struct kernel_fold fold = { .out = dev2, .count = 1, .inputs = 0, .in = { dev } };
    IS(kernels_fold(&k, &cu, TUTTI_F32, TUTTI_SUM, &fold, s1, WORDS), -EINVAL);
    YES(strstr(words, "1 to 64 inputs"));
    fold.inputs = KERNEL_INPUTS + 1;
    IS(kernels_fold(&k, &cu, TUTTI_F32, TUTTI_SUM, &fold, s1, WORDS), -EINVAL);
    IS(kernels_get(&k, &cu, TUTTI_F32, TUTTI_BAND, &f, WORDS), -EINVAL);
    YES(strstr(words, "band of f32"));
    IS(kernels_get(&k, &cu, (tutti_type)99, TUTTI_SUM, &f, WORDS), -EINVAL);
    IS(kernels_get(&k, &cu, TUTTI_F32, TUTTI_OP_USER, &f, NULL), -EINVAL);
    IS(kernels_get(&k, &cu, TUTTI_F32, TUTTI_SUM, &f, WORDS), 0);
    kernels_end(&k, &cu);
    return fixture_end();
}

/* The driver is asked once; then it is known. */
static int no_compiler(void)
{
    if (fixture_begin(true))
        return 1;
    kernels_begin(&k);
    CUfunction f;
    IS(kernels_get(&k, &cu, TUTTI_F32, TUTTI_SUM, &f, WORDS), -ENOEXEC);
    YES(strstr(words, "cuModuleLoadData"));
    uint64_t calls = fake.fakeCalls();
    IS(kernels_get(&k, &cu, TUTTI_F16, TUTTI_MAX, &f, WORDS), -ENOEXEC);
    YES(strstr(words, "cuModuleLoadData"));
    IS(fake.fakeCalls(), calls);
    kernels_end(&k, &cu);
    return fixture_end();
}

/* What may be better the next time is asked again. */
static int no_memory(void)
{
    if (fixture_begin(true))
        return 1;
    kernels_begin(&k);
    CUfunction f;
    IS(kernels_get(&k, &cu, TUTTI_F32, TUTTI_SUM, &f, WORDS), -ENOMEM);
    IS(kernels_get(&k, &cu, TUTTI_F32, TUTTI_SUM, &f, WORDS), 0);
    kernels_end(&k, &cu);
    return fixture_end();
}

/* What was unloaded after a failure is not unloaded again. */
static int failed_and_ended(void)
{
    if (fixture_begin(true))
        return 1;
    kernels_begin(&k);
    CUfunction f;
    IS(kernels_get(&k, &cu, TUTTI_F32, TUTTI_SUM, &f, WORDS), -ENOMEM);
    kernels_end(&k, &cu);
    return fixture_end();
}

static void *ask(void *into)
{
    CUcontext context;
    if (cu.cuDevicePrimaryCtxRetain(&context, 0) == 0 && cu.cuCtxSetCurrent(context) == 0)
        for (int type = 0; type < KERNELS_TYPES; type++)
            if (kernels_get(&k, &cu, (tutti_type)type, TUTTI_SUM, (CUfunction *)into + type, NULL)
                != 0)
                return "failed";
    return NULL;
}

/* Every thread gets the same functions, and each text was loaded once: a call to load, to look up,
 * and to know the device once. */
static int threads(void)
{
    enum { THREADS = 6 };
    static CUfunction got[THREADS][KERNELS_TYPES];
    pthread_t thread[THREADS];
    if (fixture_begin(true))
        return 1;
    kernels_begin(&k);
    uint64_t before = fake.fakeCalls();
    for (int i = 0; i < THREADS; i++)
        IS(pthread_create(&thread[i], NULL, ask, got[i]), 0);
    for (int i = 0; i < THREADS; i++) {
        void *said;
        pthread_join(thread[i], &said);
        YES(!said);
        IS(memcmp(got[i], got[0], sizeof got[0]), 0);
    }
    IS(fake.fakeCalls() - before, 2 * THREADS + 2 * KERNELS_TYPES + 2);
    kernels_end(&k, &cu);
    return fixture_end();
}

static void kernels_are_kept(void **state)
{
    (void)state;
    PASSES(sums, "FAKE_CUDA_DELAY_US=0", NULL);
    PASSES(long_sums, "FAKE_CUDA_DELAY_US=0", NULL);
    PASSES(refusals, NULL);
    PASSES(threads, NULL);
}

static void what_cannot_be_compiled_is_said(void **state)
{
    (void)state;
    PASSES(no_compiler, "FAKE_CUDA_FAIL=cuModuleLoadData:*:221", NULL);
    PASSES(no_compiler, "FAKE_CUDA_FAIL=cuModuleLoadData:*:222", NULL);
    PASSES(no_compiler, "FAKE_CUDA_FAIL=cuModuleLoadData:*:223", NULL);
    PASSES(no_compiler, "FAKE_CUDA_FAIL=cuModuleLoadData:*:209", NULL);
    PASSES(no_memory, "FAKE_CUDA_FAIL=cuModuleLoadData:1:2", NULL);
    PASSES(no_memory, "FAKE_CUDA_FAIL=cuModuleGetFunction:1:2", NULL);
    PASSES(no_memory, "FAKE_CUDA_FAIL=cuDeviceGetAttribute:1:2", NULL);
    PASSES(failed_and_ended, "FAKE_CUDA_FAIL=cuModuleLoadData:1:2", NULL);
    PASSES(failed_and_ended, "FAKE_CUDA_FAIL=cuModuleGetFunction:1:2", NULL);
}

int main(int argc, char **argv)
{
    (void)argc;
    if (case_needs_fake("counts its calls"))
        return CASE_SKIP;
    cases_with(argv, "fake_cuda");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_are_kept),
        cmocka_unit_test(what_cannot_be_compiled_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
