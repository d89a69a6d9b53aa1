/* ctest: timeout=600 labels=gpu serial */
/* The text of our kernels on a real driver and GPU: it compiles, folds bit for bit as the CPU does,
 * and how fast is printed, of inputs up to TUTTI_KERNEL_MOST bytes. Skipped without a GPU. */
#include "gpu/driver.h"

#include "child_case.h"
#include "kernel_check.h"
#include "gpu/kernels.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SKIP = 77, ROUNDS = 20 };

static CUcontext context;
static CUstream stream;

static int begin(void)
{
    char words[500];
    const struct driver *driver;
    struct text why = TEXT_IN(words);
    text_clear(&why);
    if (driver_open(&driver, &why) != 0) {
        fprintf(stderr, "%s\n", words);
        return SKIP;
    }
    cu = driver->call;
    OK(cu.cuDevicePrimaryCtxRetain(&context, 0));
    OK(cu.cuCtxSetCurrent(context));
    OK(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    return 0;
}

static int is_there(void) { return begin(); }

static int pairs(void)
{
    return kernel_check_every_pair(TUTTI_I8, TUTTI_F8E5M2, getenv("TUTTI_PROVE") ? 220 : 44);
}

static int every_pair(void)
{
    return begin() || kernel_check_begin(stream) || pairs() || kernel_check_end();
}

static int small_floats(void)
{
    return begin() || kernel_check_begin(stream) || kernel_check_bytes() || kernel_check_halves()
        || kernel_check_end();
}

static int measure(struct kernels *k, tutti_type type, uint32_t inputs, CUdeviceptr at,
                   uint64_t bytes, unsigned off)
{
    struct kernel_fold fold = {
        .out = at + off, .count = bytes / 16, .inputs = inputs, .divisor = 1
    };
    CUevent from, to;
    float ms;
    fold.count = bytes
        / (type == TUTTI_F32 ? 4
               : type == TUTTI_F64 ? 8
               : type == TUTTI_BF16 || type == TUTTI_F16 ? 2
               : 1);
    for (uint32_t i = 0; i < inputs; i++)
        fold.in[i] = at + (i + 1) * (bytes + 256) + off;
    OK(cu.cuEventCreate(&from, CU_EVENT_DEFAULT));
    OK(cu.cuEventCreate(&to, CU_EVENT_DEFAULT));
    for (int i = -3; i < ROUNDS; i++) {
        if (i == 0)
            OK(cu.cuEventRecord(from, stream));
        IS(kernels_fold(k, &cu, type, TUTTI_SUM, &fold, stream, NULL), 0);
    }
    OK(cu.cuEventRecord(to, stream));
    OK(cu.cuEventSynchronize(to));
    OK(cu.cuEventElapsedTime(&ms, from, to));
    double each = ms / ROUNDS * 1e-3;
    fprintf(stderr, "type %2d, %2u inputs of %6llu KiB%s: %8.1f us, %6.0f GB/s\n", type, inputs,
            (unsigned long long)bytes >> 10, off ? ", odd" : "", each * 1e6,
            (double)bytes * (inputs + 1) / each * 1e-9);
    OK(cu.cuEventDestroy_v2(from));
    OK(cu.cuEventDestroy_v2(to));
    return 0;
}

static int speed(void)
{
    static const tutti_type types[] = {
        TUTTI_F32, TUTTI_F64, TUTTI_BF16, TUTTI_F16, TUTTI_U8, TUTTI_F8E4M3, TUTTI_F8E5M2
    };
    static const uint64_t bytes[] = { 64 << 10, 1 << 20, 256 << 20 };
    static struct kernels k;
    const char *given = getenv("TUTTI_KERNEL_MOST");
    uint64_t most = given ? strtoull(given, NULL, 10) : UINT64_MAX;
    CUdeviceptr at;
    int error = begin();
    if (error)
        return error;
    kernels_begin(&k);
    OK(cu.cuMemAlloc_v2(&at, 9 * ((uint64_t)(256 << 20) + 512)));
    OK(cu.cuMemsetD8Async(at, 0, 9 * ((uint64_t)(256 << 20) + 512), stream));
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++)
        for (size_t b = 0; b < sizeof bytes / sizeof bytes[0] && bytes[b] <= most; b++)
            for (uint32_t inputs = 2; inputs <= 8; inputs *= 2)
                if (measure(&k, types[t], inputs, at, bytes[b], 0)
                    || (inputs == 8 && b == 2 && measure(&k, types[t], inputs, at, bytes[b], 8)))
                    return 1;
    kernels_end(&k, &cu);
    OK(cu.cuMemFree_v2(at));
    return 0;
}

static void passes(case_body *one)
{
    int status = case_run(one, (const char *const[]){ NULL });
    print_message("%s", case_stderr());
    assert_int_equal(status, 0);
}

static void real_pairs(void **state) { (void)state; passes(every_pair); }
static void real_small_floats(void **state) { (void)state; passes(small_floats); }
static void real_speed(void **state) { (void)state; passes(speed); }

int main(void)
{
    if (case_run(is_there, (const char *const[]){ NULL }) == SKIP) {
        printf("skipped: %s", case_stderr());
        return SKIP;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(real_pairs),
        cmocka_unit_test(real_small_floats),
        cmocka_unit_test(real_speed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
