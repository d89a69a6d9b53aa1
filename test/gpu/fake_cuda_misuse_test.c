/* ctest: timeout=120 */
/* The tests' driver finds what is seeded here: each way to misuse CUDA ends its process with one
 * line that names it. Beside each stands the right way, which must pass: a checker that always
 * complains would find everything, too. */
#include "case_device.h"
#include "device_fixture.h"

#include "gpu/kernel.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* ---- order within a process ------------------------------------------------------------------ */

static int two_streams(bool event)
{
    CUevent e;
    if (fixture_begin(true))
        return 1;
    memset(host, 7, BYTES);
    OK(cu.cuMemcpyHtoDAsync_v2(dev, host, BYTES, s1));
    if (event) {
        OK(cu.cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
        OK(cu.cuEventRecord(e, s1));
        OK(cu.cuStreamWaitEvent(s2, e, 0));
        OK(cu.cuEventDestroy_v2(e));
    }
    OK(cu.cuMemcpyDtoHAsync_v2(host + BYTES, dev, BYTES, s2));
    OK(cu.cuStreamSynchronize(s2));
    IS(memcmp(host, host + BYTES, BYTES), 0);
    return fixture_end();
}

static int reads_without_event(void) { return two_streams(false); }
static int reads_with_event(void) { return two_streams(true); }

static int writes_twice(void)
{
    if (fixture_begin(true))
        return 1;
    OK(cu.cuMemsetD8Async(dev, 1, BYTES, s1));
    OK(cu.cuMemsetD8Async(dev + BYTES - 1, 2, 1, s2));
    return fixture_end();
}

static int writes_side_by_side(void)
{
    if (fixture_begin(true))
        return 1;
    OK(cu.cuMemsetD8Async(dev, 1, BYTES / 2, s1));
    OK(cu.cuMemsetD8Async(dev + BYTES / 2, 2, BYTES / 2, s2));
    return fixture_end();
}

static int writes_what_is_read(void)
{
    if (fixture_begin(true))
        return 1;
    OK(cu.cuMemcpyDtoHAsync_v2(host, dev, BYTES, s1));
    OK(cu.cuMemsetD8Async(dev, 2, BYTES, s2));
    return fixture_end();
}

/* The host waited for something else: the event was recorded before the write. */
static int event_too_early(void)
{
    CUevent e;
    if (fixture_begin(true))
        return 1;
    OK(cu.cuEventCreate(&e, 0));
    OK(cu.cuEventRecord(e, s1));
    OK(cu.cuMemsetD8Async(dev, 1, BYTES, s1));
    OK(cu.cuEventSynchronize(e));
    OK(cu.cuMemcpyDtoHAsync_v2(host, dev, BYTES, s2));
    return fixture_end();
}

static int host_waited(void)
{
    if (fixture_begin(true))
        return 1;
    OK(cu.cuMemsetD8Async(dev, 1, BYTES, s1));
    while (cu.cuStreamQuery(s1) == CUDA_ERROR_NOT_READY) {}
    OK(cu.cuMemcpyDtoHAsync_v2(host, dev, BYTES, s2));
    return fixture_end();
}

/* A pinned buffer is memory as well: the second copy fills it while the first still
 * takes from it. */
static int pipeline_slot_reused(void)
{
    if (fixture_begin(true))
        return 1;
    OK(cu.cuMemcpyHtoDAsync_v2(dev, host, BYTES, s1));
    OK(cu.cuMemcpyDtoHAsync_v2(host, dev2, BYTES, s2));
    return fixture_end();
}

static int null_stream(bool blocking)
{
    CUstream s;
    if (fixture_begin(true))
        return 1;
    OK(cu.cuStreamCreate(&s, blocking ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING));
    OK(cu.cuMemsetD8Async(dev, 5, BYTES, NULL));
    OK(cu.cuMemcpyDtoHAsync_v2(host, dev, BYTES, s));
    OK(cu.cuMemsetD8Async(dev, 6, BYTES, CU_STREAM_LEGACY));
    OK(cu.cuStreamSynchronize(s));
    IS(host[0], 5);
    IS(host[BYTES - 1], 5);
    return fixture_end();
}

static int null_and_blocking(void) { return null_stream(true); }
static int null_and_other(void) { return null_stream(false); }

static int kernel_without_event(void)
{
    CUfunction f;
    if (fixture_begin(true))
        return 1;
    struct kernel_fold fold = { .out = dev2, .count = BYTES, .inputs = 1, .in = { dev } };
    YES(f = fixture_fold(TUTTI_U8, TUTTI_SUM));
    OK(cu.cuMemsetD8Async(dev, 1, BYTES, s1));
    OK(cu.cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, s2, (void *[]){ &fold }, NULL));
    return fixture_end();
}

static void order_is_checked(void **state)
{
    (void)state;
    FINDS("missing order:", reads_without_event, NULL);
    FINDS("missing order:", writes_twice, NULL);
    FINDS("missing order:", writes_what_is_read, NULL);
    FINDS("missing order:", event_too_early, NULL);
    FINDS("missing order:", pipeline_slot_reused, NULL);
    FINDS("missing order:", null_and_other, NULL);
    FINDS("missing order:", kernel_without_event, NULL);
    PASSES(reads_with_event, "FAKE_CUDA_DELAY_US=2000", "FAKE_CUDA_PINNED=require", NULL);
    PASSES(writes_side_by_side, "FAKE_CUDA_DELAY_US=2000", NULL);
    PASSES(host_waited, "FAKE_CUDA_DELAY_US=2000", NULL);
    for (int i = 0; i < 8; i++) {
        char seed[64];
        snprintf(seed, sizeof seed, "FAKE_CUDA_SEED=%d", i);
        PASSES(null_and_blocking, "FAKE_CUDA_DELAY_US=2000", seed, NULL);
    }
}

/* ---- host memory ----------------------------------------------------------------------------- */

static int pageable(void)
{
    if (fixture_begin(false))
        return 1;
    memset(host, 7, BYTES);
    OK(cu.cuMemcpyHtoDAsync_v2(dev, host, BYTES, s1));
    OK(cu.cuMemcpyDtoHAsync_v2(host + BYTES, dev, BYTES, s1));
    IS(memcmp(host, host + BYTES, BYTES), 0);       /* it has ended: the memory is not registered */
    return 0;
}

static int touched(bool waited)
{
    if (fixture_begin(true))
        return 1;
    OK(cu.cuMemsetD8Async(dev, 3, BYTES, s1));
    OK(cu.cuStreamSynchronize(s1));
    fake.fakeHold(s1, 1);
    OK(cu.cuMemcpyDtoHAsync_v2(host, dev, BYTES, s1));
    IS(host[0], 0xdb);              /* whoever reads now does not get yesterday's data, either */
    IS(fake.fakeHostAccess(host + BYTES, BYTES, 1), 0);
    if (!waited)
        fake.fakeHostAccess(host + 100, 1, 0);
    fake.fakeHold(s1, 0);
    OK(cu.cuStreamSynchronize(s1));
    fake.fakeHostAccess(host + 100, 1, 0);
    IS(host[0], 3);
    return fixture_end();
}

static int touched_too_early(void) { return touched(false); }
static int touched_in_time(void) { return touched(true); }

static int never_unregistered(void) { return fixture_begin(true); }

static int unregistered_too_early(void)
{
    if (fixture_begin(true))
        return 1;
    fake.fakeHold(s1, 1);
    OK(cu.cuMemcpyDtoHAsync_v2(host, dev, BYTES, s1));
    cu.cuMemHostUnregister(host);
    return 0;
}

static void host_memory_is_checked(void **state)
{
    (void)state;
    PASSES(pageable, "FAKE_CUDA_DELAY_US=2000", NULL);
    FINDS("missing registration:", pageable, "FAKE_CUDA_PINNED=require", NULL);
    FINDS("touched before the copy ended:", touched_too_early, NULL);
    PASSES(touched_in_time, NULL);
    FINDS("never unregistered:", never_unregistered, NULL);
    PASSES(never_unregistered, "FAKE_CUDA_END=lax", NULL);
    FINDS("unregistered too early:", unregistered_too_early, NULL);
}

/* ---- objects, errors ------------------------------------------------------------------------- */

static int stream_after_end(void)
{
    if (fixture_begin(true))
        return 1;
    OK(cu.cuStreamDestroy_v2(s1));
    return cu.cuMemsetD8Async(dev, 1, BYTES, s1) == 0;
}

static int event_after_end(void)
{
    CUevent e;
    if (fixture_begin(true))
        return 1;
    OK(cu.cuEventCreate(&e, 0));
    OK(cu.cuEventDestroy_v2(e));
    return cu.cuEventRecord(e, s1) == 0;
}

static int after_error(bool goes_on)
{
    if (fixture_begin(true))
        return 1;
    OK(cu.cuMemsetD8Async(dev, 1, BYTES, s1));
    IS(cu.cuStreamSynchronize(s1), CUDA_ERROR_ILLEGAL_ADDRESS);
    IS(cu.cuStreamQuery(s2), CUDA_ERROR_ILLEGAL_ADDRESS);
    if (goes_on)
        cu.cuMemsetD8Async(dev, 1, BYTES, s1);
    IS(cu.cuStreamDestroy_v2(s1), CUDA_ERROR_ILLEGAL_ADDRESS);
    IS(cu.cuMemFree_v2(dev), CUDA_ERROR_ILLEGAL_ADDRESS);
    IS(cu.cuMemHostUnregister(host), CUDA_ERROR_ILLEGAL_ADDRESS);
    return 0;
}

static int goes_on_after_error(void) { return after_error(true); }
static int cleans_up_after_error(void) { return after_error(false); }

static int reports(void)
{
    if (fixture_begin(true))
        return 1;
    IS(fake.fakeMisuses(), 0);
    OK(cu.cuMemsetD8Async(dev, 1, BYTES, s1));
    OK(cu.cuMemsetD8Async(dev, 2, BYTES, s2));
    IS(fake.fakeMisuses(), 1);
    fprintf(stderr, "went on\n");
    return fixture_end();
}

static void objects_and_errors_are_checked(void **state)
{
    (void)state;
    FINDS("use after the end:", stream_after_end, NULL);
    FINDS("use after the end:", event_after_end, NULL);
    FINDS("use after context error:", goes_on_after_error, "FAKE_CUDA_FAIL=cuMemsetD8Async:1:700a",
          NULL);
    PASSES(cleans_up_after_error, "FAKE_CUDA_FAIL=cuMemsetD8Async:1:700a", NULL);
    FINDS("missing order:", reports, "FAKE_CUDA_MISUSE=report", NULL);
    assert_non_null(strstr(case_stderr(), "went on"));
}

int main(int argc, char **argv)
{
    (void)argc;
    if (case_needs_fake("ends who misuses it"))
        return CASE_SKIP;
    cases_with(argv, "fake_cuda");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(order_is_checked),
        cmocka_unit_test(host_memory_is_checked),
        cmocka_unit_test(objects_and_errors_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
