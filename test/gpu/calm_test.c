/* ctest: timeout=60 */
/* Within a hold several pairs cost the driver one exchange of modes and one push of their context,
 * and other contexts stand on top of it; afterwards the thread's context and mode are what they
 * were. */
#include "case_device.h"

#include "gpu/calm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static uint64_t exchanges(void) { return case_calls_of("cuThreadExchangeStreamCaptureMode"); }
static uint64_t pushes(void) { return case_calls_of("cuCtxPushCurrent_v2"); }

static int is_current(CUcontext context)
{
    CUcontext now;
    OK(cu.cuCtxGetCurrent(&now));
    YES(now == context);
    return 0;
}

static int mode_is(int expected)
{
    int mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    OK(cu.cuThreadExchangeStreamCaptureMode(&mode));
    IS(mode, expected);
    OK(cu.cuThreadExchangeStreamCaptureMode(&mode));
    return 0;
}

static int pairs_of(CUcontext context, int n)
{
    const char *function;
    for (int i = 0; i < n; i++) {
        OK(calm_enter(&cu, context, &function));
        if (is_current(context))
            return 1;
        calm_leave(&cu);
    }
    return 0;
}

static int held(void)
{
    enum { TIMES = 5, GLOBAL = 0 };
    const char *function;
    CUcontext program, ours, other;
    YES(case_cuda());
    OK(cu.cuDevicePrimaryCtxRetain(&ours, 0));
    OK(cu_more.cuCtxCreate_v2(&other, 0, 0));
    OK(cu_more.cuCtxCreate_v2(&program, 0, 0));
    uint64_t exchanged = exchanges(), pushed = pushes();
    calm_hold();
    calm_release();
    IS(exchanges(), exchanged);                      /* who needs nothing asks nothing */
    calm_hold();
    if (pairs_of(ours, TIMES))
        return 1;
    IS(exchanges(), exchanged + 1);
    IS(pushes(), pushed + 1);
    calm_hold();
    OK(calm_enter(&cu, ours, &function));
    if (pairs_of(other, 1) || pairs_of(ours, 1) || is_current(ours))
        return 1;
    OK(calm_enter(&cu, other, &function));
    if (pairs_of(ours, 1) || is_current(other))
        return 1;
    calm_leave(&cu);
    calm_leave(&cu);
    calm_release();
    if (is_current(ours))
        return 1;
    IS(exchanges(), exchanged + 1);
    calm_release();
    IS(exchanges(), exchanged + 2);
    if (is_current(program) || mode_is(GLOBAL) || pairs_of(ours, 2) || is_current(program)
        || mode_is(GLOBAL))
        return 1;
    OK(cu_more.cuCtxDestroy_v2(program));
    OK(cu_more.cuCtxDestroy_v2(other));
    OK(cu.cuDevicePrimaryCtxRelease_v2(0));
    return 0;
}

/* A push that fails leaves nothing behind, and the next pair tries again. */
static int failed(void)
{
    const char *function;
    CUcontext ours, now;
    YES(case_cuda());
    OK(cu.cuDevicePrimaryCtxRetain(&ours, 0));
    OK(cu.cuCtxSetCurrent(NULL));
    calm_hold();
    IS(calm_enter(&cu, ours, &function), 2);
    if (pairs_of(ours, 2))
        return 1;
    calm_release();
    OK(cu.cuCtxGetCurrent(&now));
    YES(!now);
    if (mode_is(0))
        return 1;
    OK(cu.cuDevicePrimaryCtxRelease_v2(0));
    return 0;
}

static void pairs_within_a_hold(void **state)
{
    (void)state;
    PASSES(held, NULL);
    PASSES(failed, "FAKE_CUDA_FAIL=cuCtxPushCurrent:1:2", NULL);
}

int main(int argc, char **argv)
{
    (void)argc;
    if (case_needs_fake("counts its calls"))
        return CASE_SKIP;
    cases_with(argv, "fake_cuda");
    const struct CMUnitTest tests[] = { cmocka_unit_test(pairs_within_a_hold) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
