/* ctest: timeout=180 */
/* Kernels, sharing, and whole programs on the tests' driver: what the real one answers, and that
 * what is right passes under random delays, whatever the seed. */
#include "case_device.h"
#include "device_fixture.h"

#include "gpu/kernel.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- kernels --------------------------------------------------------------------------------- */

static int launch(CUfunction f, struct kernel_fold *fold, CUstream stream)
{
    return cu.cuLaunchKernel(f, 4, 1, 1, 256, 1, 1, 0, stream, (void *[]){ fold }, NULL);
}

static const char two_kernels[] = "// two\n.version 6.0\n.target sm_70\n.address_size 64\n"
                                  ".visible .entry first()\n"
                                  "{\n"
                                  "    ret;\n"
                                  "}\n"
                                  ".entry other (.param .u64 a, .param .u32 b)\n"
                                  "{\n"
                                  "}\n";

static int modules(void)
{
    CUmodule module;
    CUfunction f;
    if (fixture_begin(true))
        return 1;
    IS(cu.cuModuleLoadData(&module, "\177ELF"), CUDA_ERROR_INVALID_IMAGE);
    IS(cu.cuModuleLoadData(&module, ".version 6.0\n.address_size 64"), CUDA_ERROR_INVALID_PTX);
    IS(cu.cuModuleLoadData(&module, ".version 99.0\n.target sm_70\n.address_size 64"),
       CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
    IS(cu.cuModuleLoadData(&module, ".version 8.0\n.target sm_120\n.address_size 64"),
       CUDA_ERROR_NO_BINARY_FOR_GPU);
    OK(cu.cuModuleLoadData(&module, two_kernels));
    /* the beginning of a name is none */
    IS(cu.cuModuleGetFunction(&f, module, "fir"), CUDA_ERROR_NOT_FOUND);
    OK(cu.cuModuleGetFunction(&f, module, "first"));
    OK(cu.cuModuleGetFunction(&f, module, "other"));
    OK(cu.cuModuleUnload(module));
    return fixture_end();
}

static int folds(void)
{
    float *in = NULL, *out = NULL;
    CUdeviceptr pinned;
    if (fixture_begin(true))
        return 1;
    in = (float *)(void *)host;
    out = (float *)(void *)(host + BYTES);
    CUfunction f = fixture_fold(TUTTI_F32, TUTTI_SUM);
    enum { N = BYTES / 4 };
    for (int i = 0; i < N; i++)
        in[i] = (float)i * 1e-3f;
    OK(cu.cuMemHostGetDevicePointer_v2(&pinned, host, 0));
    OK(cu.cuMemcpyHtoDAsync_v2(dev, host, BYTES, s1));
    struct kernel_fold fold = { .out = dev2, .count = N, .inputs = 3, .in = { dev, pinned, dev } };
    OK(launch(f, &fold, s1));
    fold.out = dev;                                  /* its arguments were taken at the call */
    OK(launch(f, &fold, s1));
    OK(cu.cuMemcpyDtoHAsync_v2(out, dev2, BYTES, s1));
    OK(cu.cuStreamSynchronize(s1));
    for (int i = 0; i < N; i++)
        YES(out[i] == in[i] + in[i] + in[i]);
    IS(memcmp(fake.fakePeek(dev), out, BYTES), 0);
    return fixture_end();
}

/* A host address, one byte too much, memory of nobody: no error at the launch, and then there is no
 * way back. */
static int wrong(CUdeviceptr in, uint64_t count)
{
    struct kernel_fold fold = { .out = dev2, .count = count, .inputs = 1, .in = { in } };
    OK(launch(fixture_fold(TUTTI_U8, TUTTI_SUM), &fold, s1));
    IS(cu.cuStreamSynchronize(s1), CUDA_ERROR_ILLEGAL_ADDRESS);
    IS(cu.cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    IS(cu.cuMemHostUnregister(host), CUDA_ERROR_ILLEGAL_ADDRESS);
    return 0;
}

static int host_address(void) { return fixture_begin(true) || wrong((uintptr_t)host, 1); }
static int too_long(void) { return fixture_begin(true) || wrong(dev + 1, BYTES); }
static int nobodys(void) { return fixture_begin(true) || wrong(dev2 + ((CUdeviceptr)1 << 30), 1); }

static int bad_launches(void)
{
    if (fixture_begin(true))
        return 1;
    struct kernel_fold fold = { .out = dev2, .count = 1, .inputs = 1, .in = { dev } };
    void *parameters[] = { &fold };
    CUfunction f = fixture_fold(TUTTI_U8, TUTTI_SUM);
    IS(cu.cuLaunchKernel(f, 0, 1, 1, 1, 1, 1, 0, s1, parameters, NULL), CUDA_ERROR_INVALID_VALUE);
    IS(cu.cuLaunchKernel(f, 1, 1, 1, 1025, 1, 1, 0, s1, parameters, NULL),
       CUDA_ERROR_INVALID_VALUE);
    IS(cu.cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 1 << 20, s1, parameters, NULL),
       CUDA_ERROR_INVALID_VALUE);
    IS(cu.cuLaunchKernel((CUfunction)(void *)&fold, 1, 1, 1, 1, 1, 1, 0, s1, parameters, NULL),
       CUDA_ERROR_INVALID_HANDLE);
    return fixture_end();
}

static void kernels_are_run(void **state)
{
    (void)state;
    PASSES(modules, NULL);
    PASSES(folds, "FAKE_CUDA_DELAY_US=300", NULL);
    PASSES(host_address, NULL);
    PASSES(too_long, NULL);
    PASSES(nobodys, NULL);
    PASSES(bad_launches, NULL);
}

/* ---- sharing --------------------------------------------------------------------------------- */

/* Gives out a handle, frees, allocates at the same address, gives out that handle; then frees what
 * a first one has closed. */
static int gives(void)
{
    CUipcMemHandle handle;
    CUdeviceptr before = 0;
    char go;
    if (fixture_begin(true))
        return 1;
    OK(cu.cuMemsetD8Async(dev2, 0x11, BYTES, s1));
    OK(cu.cuStreamSynchronize(s1));
    OK(fixture_export(dev2));
    YES(hear(&go, 1));
    before = dev2;
    OK(cu.cuMemFree_v2(dev2));          /* that the other one still has open: told, not ended for */
    OK(cu.cuMemAlloc_v2(&dev2, BYTES));
    IS(dev2, before);
    OK(cu.cuMemsetD8Async(dev2, 0x22, BYTES, s1));
    OK(cu.cuStreamSynchronize(s1));
    OK(fixture_export(dev2));
    YES(hear(&go, 1));
    OK(fixture_end());
    YES(tell(&handle, sizeof handle));
    YES(hear(&go, 1));
    IS(fake.fakeMisuses(), 1);          /* the one free before close */
    _Exit(0);
}

static int takes(void)
{
    CUipcMemHandle first, second;
    CUdeviceptr at, again, other;
    CUcontext far;
    if (fixture_begin(true))
        return 1;
    YES(hear(&first, sizeof first));
    IS(cu.cuIpcOpenMemHandle_v2(&at, first, 0), CUDA_ERROR_INVALID_VALUE);
    OK(cu.cuIpcOpenMemHandle_v2(&at, first, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    OK(cu.cuIpcOpenMemHandle_v2(&again, first, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    IS(at, again);
    IS(cu.cuIpcGetMemHandle(&second, at), CUDA_ERROR_INVALID_VALUE);        /* not ours to give */
    OK(cu.cuDevicePrimaryCtxRetain(&far, 1));
    OK(cu.cuCtxPushCurrent_v2(far));
    IS(cu.cuIpcOpenMemHandle_v2(&other, first, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
       CUDA_ERROR_INVALID_CONTEXT);
    OK(cu.cuCtxPopCurrent_v2(NULL));
    IS(cu.cuIpcCloseMemHandle(at + 1), CUDA_ERROR_INVALID_VALUE);
    YES(tell("g", 1));
    YES(hear(&second, sizeof second));
    IS(cu.cuIpcOpenMemHandle_v2(&other, second, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
       CUDA_ERROR_ALREADY_MAPPED);
    OK(cu.cuIpcCloseMemHandle(at));
    IS(cu.cuIpcOpenMemHandle_v2(&other, second, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
       CUDA_ERROR_ALREADY_MAPPED);
    OK(cu.cuIpcCloseMemHandle(at));
    IS(cu.cuIpcCloseMemHandle(at), CUDA_ERROR_INVALID_VALUE);
    OK(cu.cuIpcOpenMemHandle_v2(&other, second, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    OK(cu.cuMemcpyDtoHAsync_v2(host, other, BYTES, s1));
    OK(cu.cuStreamSynchronize(s1));
    IS(host[BYTES - 1], 0x22);
    OK(cu.cuIpcCloseMemHandle(other));
    YES(tell("g", 1));
    YES(hear(&second, sizeof second));
    /* freed */
    IS(cu.cuIpcOpenMemHandle_v2(&other, second, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
       CUDA_ERROR_INVALID_VALUE);
    YES(tell("g", 1));
    return fixture_end();
}

/* The importer is killed in the midst: its opens count for nothing any more, nor does what it had
 * under way. */
static int killed(void)
{
    CUdeviceptr at;
    if (fixture_begin(true))
        return 1;
    OK(fixture_import(&at));
    fake.fakeHold(s1, 1);
    OK(cu.cuMemsetD8Async(at, 1, BYTES, s1));
    abort();
}

static int survives(void)
{
    char go;
    if (fixture_begin(true))
        return 1;
    OK(fixture_export(dev));
    YES(!hear(&go, 1));             /* it is ending, and cannot be reaped before the test does */
    OK(cu.cuMemsetD8Async(dev, 2, BYTES, s1));
    return fixture_end();
}

static void sharing_is_as_cudas(void **state)
{
    (void)state;
    PAIR_PASSES(gives, takes, "FAKE_CUDA_DEVICES=2", "FAKE_CUDA_MISUSE=report", NULL);
    int second, first = case_pair(survives, killed, (const char *const[]){ NULL }, &second);
    assert_int_equal(second, 128 + 6);
    if (first)
        fail_msg("%s", case_stderr());
}

/* ---- whole programs -------------------------------------------------------------------------- */

enum { SLOTS = 4, SLOT = 4096, PIECES = 32 };

/* A pipeline as a staged road will be: pieces go down by one stream, are changed by the CPU, go
 * up by another, through a few slots of pinned memory. What guards a slot are the events of its
 * last copies. */
static int pipeline(void)
{
    CUevent down[SLOTS], up[SLOTS];
    if (fixture_begin(true))
        return 1;
    for (int i = 0; i < SLOTS; i++) {
        OK(cu.cuEventCreate(&down[i], CU_EVENT_DISABLE_TIMING));
        OK(cu.cuEventCreate(&up[i], CU_EVENT_DISABLE_TIMING));
    }
    OK(cu.cuMemsetD8Async(dev, 1, SLOTS * SLOT, s2));
    OK(cu.cuStreamSynchronize(s2));
    for (int p = 0; p < PIECES + 1; p++) {
        int slot = p % SLOTS, last = (p + SLOTS - 1) % SLOTS;
        if (p < PIECES) {
            /* the slot is free, and the piece is what the last round left */
            OK(cu.cuStreamWaitEvent(s1, up[slot], 0));
            OK(cu.cuMemcpyDtoHAsync_v2(host + slot * SLOT, dev + (CUdeviceptr)(slot * SLOT), SLOT,
                                       s1));
            OK(cu.cuEventRecord(down[slot], s1));
        }
        if (p > 0) {
            OK(cu.cuEventSynchronize(down[last]));
            fake.fakeHostAccess(host + last * SLOT, SLOT, 1);
            for (int i = 0; i < SLOT; i++)
                host[last * SLOT + i]++;
            OK(cu.cuMemcpyHtoDAsync_v2(dev + (CUdeviceptr)(last * SLOT), host + last * SLOT, SLOT,
                                       s2));
            OK(cu.cuEventRecord(up[last], s2));
        }
    }
    OK(cu.cuCtxSynchronize());
    const unsigned char *seen = fake.fakePeek(dev);
    for (int i = 0; i < SLOTS * SLOT; i++)
        IS(seen[i], 1 + PIECES / SLOTS);
    for (int i = 0; i < SLOTS; i++) {
        OK(cu.cuEventDestroy_v2(down[i]));
        OK(cu.cuEventDestroy_v2(up[i]));
    }
    return fixture_end();
}

/* Two processes change one buffer in turn, one adds 1 and one doubles, ordered by events alone: the
 * hosts only tell each other that a record was made. */
static int turns(bool exporter)
{
    enum { ROUNDS = 12, N = 256 };
    CUipcEventHandle event_handle;
    CUevent mine, theirs;
    CUdeviceptr at = 0;
    char go = 'g';
    if (fixture_begin(true))
        return 1;
    float *value = (float *)(void *)host;
    CUfunction f = fixture_fold(TUTTI_F32, TUTTI_SUM);
    OK(cu.cuEventCreate(&mine, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
    OK(cu.cuIpcGetEventHandle(&event_handle, mine));
    YES(tell(&event_handle, sizeof event_handle));
    YES(hear(&event_handle, sizeof event_handle));
    OK(cu.cuIpcOpenEventHandle(&theirs, event_handle));
    if (exporter) {
        at = dev;
        OK(cu.cuMemsetD8Async(dev, 0, N * 4, s1));
        OK(cu.cuStreamSynchronize(s1));
        OK(fixture_export(dev));
    } else {
        OK(fixture_import(&at));
    }
    for (int i = 0; i < N; i++)
        value[i] = 1;
    OK(cu.cuMemcpyHtoDAsync_v2(dev2, host, N * 4, s1));
    struct kernel_fold fold = {
        .out = at, .count = N, .inputs = 2, .in = { at, exporter ? dev2 : at }
    };
    for (int round = 0; round < ROUNDS; round++) {
        if (round || !exporter) {
            YES(hear(&go, 1));
            OK(cu.cuStreamWaitEvent(s1, theirs, 0));
        }
        OK(launch(f, &fold, s1));
        OK(cu.cuEventRecord(mine, s1));
        YES(tell(&go, 1));
    }
    if (exporter) {
        YES(hear(&go, 1));
        OK(cu.cuEventSynchronize(theirs));
        OK(cu.cuMemcpyDtoHAsync_v2(host, at, N * 4, s1));
        OK(cu.cuStreamSynchronize(s1));
        for (int i = 0; i < N; i++)
            YES(value[i] == (float)((2 << ROUNDS) - 2));
        YES(hear(&go, 1));                           /* closed */
    } else {
        OK(cu.cuStreamSynchronize(s1));
        OK(cu.cuIpcCloseMemHandle(at));
        YES(tell(&go, 1));
    }
    OK(cu.cuEventDestroy_v2(theirs));
    OK(cu.cuEventDestroy_v2(mine));
    return fixture_end();
}

static int first_turn(void) { return turns(true); }
static int second_turn(void) { return turns(false); }

static void right_programs_pass(void **state)
{
    (void)state;
    char seed[64];
    for (int i = 0; i < (getenv("TUTTI_PROVE") ? 200 : 8); i++) {
        snprintf(seed, sizeof seed, "FAKE_CUDA_SEED=%d", i);
        PASSES(pipeline, seed, "FAKE_CUDA_DELAY_US=400", "FAKE_CUDA_PINNED=require", NULL);
        PAIR_PASSES(first_turn, second_turn, seed, "FAKE_CUDA_DELAY_US=400", NULL);
    }
    PASSES(pipeline, "FAKE_CUDA_DELAY_US=0", NULL);
    PAIR_PASSES(first_turn, second_turn, "FAKE_CUDA_DELAY_US=0", NULL);
}

int main(int argc, char **argv)
{
    (void)argc;
    if (case_needs_fake("ends who misuses it"))
        return CASE_SKIP;
    cases_with(argv, "fake_cuda");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_are_run),
        cmocka_unit_test(sharing_is_as_cudas),
        cmocka_unit_test(right_programs_pass),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
