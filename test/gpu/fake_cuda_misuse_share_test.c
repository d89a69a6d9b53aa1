/* ctest: timeout=120 */
/* What processes that share device memory can do wrong, and that the tests' driver finds it. A
 * wrong process is ended in the midst of it; the other one hears of that by its socket. */
#include "case_device.h"
#include "device_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static int exporter_opens(void)
{
    CUipcMemHandle handle;
    CUdeviceptr at;
    if (fixture_begin(true))
        return 1;
    OK(cu.cuIpcGetMemHandle(&handle, dev));
    cu.cuIpcOpenMemHandle_v2(&at, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
    return 0;
}

static int wrong_base(void)
{
    CUipcMemHandle handle;
    if (fixture_begin(true))
        return 1;
    OK(cu.cuIpcGetMemHandle(&handle, dev + 512));
    return 0;
}

/* The exporter of the cases of two: gives its buffer's handle, and frees it when the
 * other says so. */
static int exports(void)
{
    char go;
    if (fixture_begin(true))
        return 1;
    OK(cu.cuMemsetD8Async(dev, 9, BYTES, s1));
    OK(cu.cuStreamSynchronize(s1));
    OK(fixture_export(dev));
    YES(hear(&go, 1));
    OK(cu.cuMemFree_v2(dev));
    YES(tell(&go, 1));
    YES(hear(&go, 1));
    OK(cu.cuMemAlloc_v2(&dev, BYTES));
    return fixture_end();
}

static int import(bool closes, bool uses, bool ever_closes)
{
    char go = 'g';
    CUdeviceptr at;
    if (fixture_begin(true))
        return 1;
    OK(fixture_import(&at));
    OK(cu.cuMemcpyDtoHAsync_v2(host, at, BYTES, s1));
    OK(cu.cuStreamSynchronize(s1));
    IS(host[BYTES - 1], 9);
    if (closes)
        OK(cu.cuIpcCloseMemHandle(at));
    YES(tell(&go, 1));
    if (!hear(&go, 1))
        return fixture_end();                           /* the exporter was ended for its misuse */
    if (uses)
        cu.cuMemcpyDtoHAsync_v2(host, at, BYTES, s1);
    if (!closes && ever_closes)
        OK(cu.cuIpcCloseMemHandle(at));
    YES(tell(&go, 1));
    return fixture_end();
}

/* Its stream had the work when the exporter freed the memory, and comes to it after. */
static int uses_late(void)
{
    char go = 'g';
    CUdeviceptr at;
    if (fixture_begin(true))
        return 1;
    OK(fixture_import(&at));
    fake.fakeHold(s1, 1);
    OK(cu.cuMemcpyDtoHAsync_v2(host, at, BYTES, s1));
    YES(tell(&go, 1));
    YES(hear(&go, 1));
    fake.fakeHold(s1, 0);
    OK(cu.cuStreamSynchronize(s1));
    return fixture_end();
}

static int imports_and_closes(void) { return import(true, false, true); }
static int imports_and_keeps(void) { return import(false, false, true); }
static int imports_and_uses(void) { return import(false, true, true); }
static int imports_for_ever(void) { return import(false, false, false); }

static int closes_too_early(void)
{
    CUdeviceptr at;
    if (fixture_begin(true))
        return 1;
    OK(fixture_import(&at));
    fake.fakeHold(s1, 1);
    OK(cu.cuMemcpyDtoHAsync_v2(host, at, BYTES, s1));
    cu.cuIpcCloseMemHandle(at);
    return 0;
}

static void sharing_is_checked(void **state)
{
    (void)state;
    FINDS("opened in the exporter:", exporter_opens, NULL);
    FINDS("wrong base:", wrong_base, NULL);
    PAIR_PASSES(exports, imports_and_closes, "FAKE_CUDA_DELAY_US=500", NULL);
    FINDS_IN_FIRST("free before close:", exports, imports_and_keeps, NULL);
    FINDS_IN_SECOND("stale mapping:", exports, imports_and_uses, "FAKE_CUDA_MISUSE=report", NULL);
    FINDS_IN_SECOND("stale mapping:", exports, uses_late, "FAKE_CUDA_MISUSE=report", NULL);
    FINDS_IN_SECOND("never closed:", exports, imports_for_ever, "FAKE_CUDA_MISUSE=report", NULL);
    FINDS_IN_SECOND("closed too early:", exports, closes_too_early, NULL);
}

/* One process writes, and tells the other at once; an event, if there is one, puts its read after
 * the write. */
static int writes(bool event)
{
    char go = 'g';
    CUipcEventHandle event_handle;
    CUevent e;
    if (fixture_begin(true))
        return 1;
    OK(fixture_export(dev));
    OK(cu.cuEventCreate(&e, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
    OK(cu.cuIpcGetEventHandle(&event_handle, e));
    YES(tell(&event_handle, sizeof event_handle));
    fake.fakeHold(s1, 1);
    OK(cu.cuMemsetD8Async(dev, 0x44, BYTES, s1));
    if (event)
        OK(cu.cuEventRecord(e, s1));
    YES(tell(&go, 1));
    hear(&go, 1);   /* its read is given to its stream, and must not have begun; or it has ended */
    fake.fakeHold(s1, 0);
    hear(&go, 1);
    return fixture_end();
}

static int reads(bool event)
{
    char go = 'g';
    CUipcEventHandle event_handle;
    CUevent e;
    CUdeviceptr at;
    if (fixture_begin(true))
        return 1;
    OK(fixture_import(&at));
    YES(hear(&event_handle, sizeof event_handle));
    OK(cu.cuIpcOpenEventHandle(&e, event_handle));
    YES(hear(&go, 1));
    if (event)
        OK(cu.cuStreamWaitEvent(s1, e, 0));
    OK(cu.cuMemcpyDtoHAsync_v2(host, at, BYTES, s1));
    IS(cu.cuStreamQuery(s1), CUDA_ERROR_NOT_READY);
    YES(tell(&go, 1));
    OK(cu.cuStreamSynchronize(s1));
    IS(host[0], 0x44);
    IS(host[BYTES - 1], 0x44);
    OK(cu.cuIpcCloseMemHandle(at));
    OK(cu.cuEventDestroy_v2(e));
    YES(tell(&go, 1));
    return fixture_end();
}

static int writes_with_event(void) { return writes(true); }
static int writes_without_event(void) { return writes(false); }
static int reads_after_event(void) { return reads(true); }
static int reads_at_once(void) { return reads(false); }

static void order_between_processes_is_checked(void **state)
{
    (void)state;
    FINDS_IN_SECOND("missing order between processes:", writes_without_event, reads_at_once, NULL);
    PAIR_PASSES(writes_with_event, reads_after_event, "FAKE_CUDA_DELAY_US=500", NULL);
}

int main(int argc, char **argv)
{
    (void)argc;
    if (case_needs_fake("ends who misuses it"))
        return CASE_SKIP;
    cases_with(argv, "fake_cuda");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sharing_is_checked),
        cmocka_unit_test(order_between_processes_is_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
