/* ctest: timeout=120 labels=gpu serial */
/* On a real driver and GPU, where there is one: our table fits it, pointers are told apart, and the
 * rules that the tests' driver goes by are the real one's. Answers that nothing of ours relies on
 * are printed, for whoever compares the two. Skipped without a GPU. */
#include "gpu/driver.h"

#include "child_case.h"
#include "support/skip.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { REAL_BYTES = 8 << 20, OFFSET = 4096, SKIP = 77 };

static const struct driver *driver;
static CUcontext context;
static CUstream stream;
static CUdeviceptr buffer;
static unsigned char *memory;

static int real_begin(void)
{
    char words[500];
    struct text why = TEXT_IN(words);
    text_clear(&why);
    if (driver_open(&driver, &why) != 0) {
        fprintf(stderr, "%s\n", words);
        return SKIP;
    }
    cu = driver->call;
    memory = mmap(NULL, REAL_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    YES(memory != MAP_FAILED);
    OK(cu.cuDevicePrimaryCtxRetain(&context, 0));
    OK(cu.cuCtxSetCurrent(context));
    OK(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cu.cuMemAlloc_v2(&buffer, REAL_BYTES));
    OK(cu.cuMemHostRegister_v2(memory, REAL_BYTES,
                               CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP));
    return 0;
}

static int real_end(void)
{
    OK(cu.cuStreamSynchronize(stream));
    OK(cu.cuMemHostUnregister(memory));
    OK(cu.cuMemFree_v2(buffer));
    OK(cu.cuStreamDestroy_v2(stream));
    OK(cu.cuDevicePrimaryCtxRelease_v2(0));
    return 0;
}

static int devices(void)
{
    struct driver_device d;
    int error = real_begin();
    if (error)
        return error;
    for (int i = 0; i < driver->devices; i++) {
        OK(driver_device(driver, i, &d, NULL));
        YES(d.name[0] && d.bus[0] && d.major >= 5);
        fprintf(stderr, "%s, compute %d.%d, bus %s, driver %d\n", d.name, d.major, d.minor, d.bus,
                driver->version);
    }
    return real_end();
}

static int pointers(void)
{
    struct driver_pointer p;
    CUmemGenericAllocationHandle h;
    CUmemAllocationProp prop = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
        .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 }
    };
    CUmemAccessDesc access = { { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
                               CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
    CUdeviceptr at;
    size_t grain;
    int error = real_begin();
    if (error)
        return error;
    OK(driver_pointer((void *)(uintptr_t)(buffer + OFFSET), &p, NULL));
    IS(p.memory, DRIVER_DEVICE);
    IS(p.device, 0);
    YES(p.context == context);
    IS(p.address, buffer + OFFSET);
    IS(p.base, buffer);
    IS(p.bytes, REAL_BYTES);
    YES(p.buffer && p.ipc);
    OK(driver_pointer(memory + OFFSET, &p, NULL));
    IS(p.memory, DRIVER_PINNED);
    OK(driver_pointer(&p, &p, NULL));
    IS(p.memory, DRIVER_HOST);
    OK(driver_pointer("text", &p, NULL));
    IS(p.memory, DRIVER_HOST);
    OK(cu.cuMemGetAllocationGranularity(&grain, &prop, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
    OK(cu.cuMemCreate(&h, grain, &prop, 0));
    OK(cu.cuMemAddressReserve(&at, grain, 0, 0, 0));
    OK(cu.cuMemMap(at, grain, 0, h, 0));
    OK(cu.cuMemSetAccess(at, grain, &access, 1));
    OK(driver_pointer((void *)(uintptr_t)at, &p, NULL));
    IS(p.memory, DRIVER_DEVICE);
    YES(p.descriptor && !p.ipc);
    fprintf(stderr, "memory of cuMemCreate has %s context\n", p.context ? "a" : "no");
    OK(cu.cuMemUnmap(at, grain));
    OK(cu.cuMemAddressFree(at, grain));
    OK(cu.cuMemRelease(h));
    return real_end();
}

static int rules(void)
{
    CUevent e;
    CUdeviceptr at;
    CUmodule module;
    CUipcMemHandle handle;
    int error = real_begin(), value = 7, status;
    if (error)
        return error;
    IS(cu.cuMemHostRegister_v2(memory, REAL_BYTES, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    IS(cu.cuMemHostUnregister(&value), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    OK(cu.cuMemHostGetDevicePointer_v2(&at, memory, 0));
    OK(cu.cuDeviceCanAccessPeer(&value, 0, 0));
    IS(value, 0);
    IS(cu.cuEventCreate(&e, CU_EVENT_INTERPROCESS), CUDA_ERROR_INVALID_VALUE);
    OK(cu.cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
    OK(cu.cuEventQuery(e));
    OK(cu.cuStreamWaitEvent(stream, e, 0));
    OK(cu.cuStreamIsCapturing(stream, &value));
    IS(value, CU_STREAM_CAPTURE_STATUS_NONE);
    YES(cu.cuMemAlloc_v2(&at, 0) != 0);
    fprintf(stderr, "a module that is none: %d\n",
            cu.cuModuleLoadData(&module, "this is neither PTX nor a cubin"));
    OK(cu.cuIpcGetMemHandle(&handle, buffer));
    error = cu.cuIpcOpenMemHandle_v2(&at, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
    fprintf(stderr, "opened in the exporter: %d\n", error);
    YES(error != 0);
    pid_t pid = fork();
    if (pid == 0)
        _exit(cu.cuMemAlloc_v2(&at, 1) == CUDA_ERROR_NOT_INITIALIZED ? 0 : 1);
    YES(pid > 0 && waitpid(pid, &status, 0) == pid);
    fprintf(stderr, "a forked child %s what it should\n", status ? "does not hear" : "hears");
    OK(cu.cuEventDestroy_v2(e));
    return real_end();
}

static int copies(void)
{
    int error = real_begin();
    if (error)
        return error;
    for (int i = 0; i < REAL_BYTES; i++)
        memory[i] = (unsigned char)(i * 7);
    OK(cu.cuMemcpyHtoDAsync_v2(buffer, memory, REAL_BYTES, stream));
    OK(cu.cuMemsetD8Async(buffer + OFFSET, 0x5a, OFFSET, stream));
    OK(cu.cuStreamSynchronize(stream));
    memset(memory, 0, REAL_BYTES);
    OK(cu.cuMemcpyDtoHAsync_v2(memory, buffer, REAL_BYTES, stream));
    OK(cu.cuStreamSynchronize(stream));
    for (int i = 0; i < REAL_BYTES; i++)
        IS(memory[i], i >= OFFSET && i < 2 * OFFSET ? 0x5a : (unsigned char)(i * 7));
    return real_end();
}

static int exports(void)
{
    CUipcMemHandle handle;
    char go;
    int error = real_begin();
    if (error)
        return error;
    OK(cu.cuMemsetD8Async(buffer, 0x33, REAL_BYTES, stream));
    OK(cu.cuStreamSynchronize(stream));
    error = cu.cuIpcGetMemHandle(&handle, buffer);
    fprintf(stderr, "the handle of a buffer: %d\n", error);
    if (error)
        return SKIP;                                 /* a container may forbid it */
    YES(tell(&handle, sizeof handle));
    YES(hear(&go, 1));
    OK(cu.cuMemcpyDtoHAsync_v2(memory, buffer, REAL_BYTES, stream));
    OK(cu.cuStreamSynchronize(stream));
    IS(memory[0], 0x33);
    IS(memory[OFFSET], 0x44);
    YES(tell(&go, 1));
    YES(hear(&go, 1));                               /* closed */
    return real_end();
}

static int imports(void)
{
    CUipcMemHandle handle;
    CUdeviceptr at, again;
    char go;
    int error = real_begin();
    if (error)
        return error;
    if (!hear(&handle, sizeof handle))
        return SKIP;
    error = cu.cuIpcOpenMemHandle_v2(&at, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
    fprintf(stderr, "opened in another process: %d\n", error);
    if (error)
        return SKIP;
    error = cu.cuIpcOpenMemHandle_v2(&again, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
    fprintf(stderr, "opened twice: %d, %s address\n", error,
            !error && at == again ? "the same" : "another");
    if (!error)
        OK(cu.cuIpcCloseMemHandle(again));
    OK(cu.cuMemcpyDtoHAsync_v2(memory, at, REAL_BYTES, stream));
    OK(cu.cuStreamSynchronize(stream));
    IS(memory[REAL_BYTES - 1], 0x33);
    OK(cu.cuMemsetD8Async(at + OFFSET, 0x44, OFFSET, stream));
    OK(cu.cuStreamSynchronize(stream));
    YES(tell("g", 1));
    YES(hear(&go, 1));
    OK(cu.cuIpcCloseMemHandle(at));
    YES(tell("g", 1));
    return real_end();
}

static void passes_or_skips(case_body *one, case_body *other)
{
    int second = 0, first = other ? case_pair(one, other, (const char *const[]){ NULL }, &second)
                                  : case_run(one, (const char *const[]){ NULL });
    print_message("%s", case_stderr());
    if (first == SKIP || second == SKIP)
        skip_because("the driver does not lend memory here: see above");
    assert_int_equal(first, 0);
    assert_int_equal(second, 0);
}

static void real_devices(void **state) { (void)state; passes_or_skips(devices, NULL); }
static void real_pointers(void **state) { (void)state; passes_or_skips(pointers, NULL); }
static void real_rules(void **state) { (void)state; passes_or_skips(rules, NULL); }
static void real_copies(void **state) { (void)state; passes_or_skips(copies, NULL); }
static void real_sharing(void **state) { (void)state; passes_or_skips(exports, imports); }

int main(void)
{
    if (case_run(devices, (const char *const[]){ NULL }) == SKIP) {
        printf("skipped: %s", case_stderr());
        return SKIP;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(real_devices),
        cmocka_unit_test(real_pointers),
        cmocka_unit_test(real_rules),
        cmocka_unit_test(real_copies),
        cmocka_unit_test(real_sharing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
