/* ctest: timeout=180 */
/* The rules of the tests' driver, one after another: what the real one answers, ours has to answer,
 * or what is proved on it means nothing. And whole programs that are right: they pass under random
 * delays, whatever the seed. */
#include "case_device.h"
#include "device_fixture.h"

#include "gpu/kernel.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- devices, contexts ----------------------------------------------------------------------- */

static int devices(void)
{
    int n = 0, value = 0;
    char name[64], bus[20];
    CUuuid a, b;
    CUcontext first, second, now;
    CUdevice d;
    YES(case_cuda());
    OK(cu.cuDeviceGetCount(&n));
    IS(n, 2);
    OK(cu.cuDeviceGetName(name, sizeof name, 0));
    IS(strcmp(name, "Fake GPU C"), 0);               /* CUDA_VISIBLE_DEVICES=2,0 */
    OK(cu.cuDeviceGetUuid_v2(&a, 0));
    OK(cu.cuDeviceGetUuid_v2(&b, 1));
    YES(memcmp(&a, &b, sizeof a) != 0);
    OK(cu.cuDeviceGetPCIBusId(bus, sizeof bus, 1));
    IS(strcmp(bus, "0000:10:00.0"), 0);
    OK(cu.cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0));
    IS(value, 9);
    IS(cu.cuDeviceGetAttribute(&value, 9999, 0), CUDA_ERROR_INVALID_VALUE);
    IS(cu.cuDeviceGet(&d, 2), CUDA_ERROR_INVALID_DEVICE);
    OK(cu.cuDeviceCanAccessPeer(&value, 0, 0));
    IS(value, 0);
    OK(cu.cuDeviceCanAccessPeer(&value, 0, 1));
    IS(value, 1);

    OK(cu.cuCtxGetCurrent(&first));
    OK(cu.cuDevicePrimaryCtxRetain(&second, 1));
    YES(first != second);
    OK(cu.cuCtxPushCurrent_v2(second));
    OK(cu.cuCtxGetDevice(&d));
    IS(d, 1);
    OK(cu.cuCtxEnablePeerAccess(first, 0));
    IS(cu.cuCtxEnablePeerAccess(first, 0), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
    OK(cu.cuCtxPopCurrent_v2(&now));
    YES(now == second);
    OK(cu.cuCtxGetCurrent(&now));
    YES(now == first);
    OK(cu.cuDevicePrimaryCtxRelease_v2(1));
    IS(cu.cuDevicePrimaryCtxRelease_v2(1), CUDA_ERROR_INVALID_CONTEXT);
    IS(cu.cuCtxPushCurrent_v2(second), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    OK(cu.cuCtxSetCurrent(NULL));
    IS(cu.cuMemAlloc_v2(&dev, 1), CUDA_ERROR_INVALID_CONTEXT);
    IS(cu.cuCtxSynchronize(), CUDA_ERROR_INVALID_CONTEXT);
    return 0;
}

static int no_devices(void) { YES(!case_cuda()); IS(cu.cuInit(0), CUDA_ERROR_NO_DEVICE); return 0; }
static int a_stub(void) { YES(!case_cuda()); IS(cu.cuInit(0), CUDA_ERROR_STUB_LIBRARY); return 0; }

static int not_begun(void)
{
    int n;
    YES(!case_cuda());                               /* the first cuInit fails */
    IS(cu.cuDeviceGetCount(&n), CUDA_ERROR_NOT_INITIALIZED);
    OK(cu.cuInit(0));
    OK(cu.cuDeviceGetCount(&n));
    return 0;
}

/* What forks off from a process that has begun CUDA has none. */
static int forks(void)
{
    int status;
    YES(case_cuda());
    pid_t pid = fork();
    YES(pid >= 0);
    if (!pid)
        _exit(cu.cuMemAlloc_v2(&dev, 1) == CUDA_ERROR_NOT_INITIALIZED
                      && cu.cuInit(0) == CUDA_ERROR_NOT_INITIALIZED
                  ? 0
                  : 1);
    YES(waitpid(pid, &status, 0) == pid);
    IS(status, 0);
    OK(cu.cuMemAlloc_v2(&dev, 1));
    return 0;
}

static int faults(void)
{
    const char *name = NULL;
    if (fixture_begin(true))
        return 1;
    OK(cu.cuMemsetD8Async(dev, 1, BYTES, s1));
    OK(cu.cuMemcpyDtoHAsync_v2(host, dev, BYTES, s1));
    IS(cu.cuMemsetD8Async(dev, 1, BYTES, s1), CUDA_ERROR_OUT_OF_MEMORY);
    OK(cu.cuMemsetD8Async(dev, 1, BYTES, s1));
    IS(cu.cuMemcpyDtoHAsync_v2(host, dev, BYTES, s1), CUDA_ERROR_LAUNCH_FAILED);
    IS(cu.cuStreamSynchronize(s1), CUDA_ERROR_LAUNCH_FAILED);               /* and so it stays */
    IS(cu.cuStreamQuery(s2), CUDA_ERROR_LAUNCH_FAILED);
    IS(cu.cuMemHostUnregister(host), CUDA_ERROR_LAUNCH_FAILED);
    OK(cu.cuGetErrorName(CUDA_ERROR_LAUNCH_FAILED, &name));
    IS(strcmp(name, "CUDA_ERROR_LAUNCH_FAILED"), 0);
    IS(cu.cuGetErrorName(12345, &name), CUDA_ERROR_INVALID_VALUE);
    return 0;
}

static void begins_and_fails_as_cuda_does(void **state)
{
    (void)state;
    PASSES(devices, "FAKE_CUDA_DEVICES=3", "CUDA_VISIBLE_DEVICES=2,0", NULL);
    PASSES(no_devices, "FAKE_CUDA_DEVICES=0", NULL);
    PASSES(no_devices, "CUDA_VISIBLE_DEVICES=", NULL);
    PASSES(a_stub, "FAKE_CUDA_STUB=1", NULL);
    PASSES(not_begun, "FAKE_CUDA_FAIL=cuInit:1:999", NULL);
    PASSES(forks, NULL);
    PASSES(faults, "FAKE_CUDA_FAIL=cuMemsetD8Async:2:2,cuMemcpyDtoHAsync:2:719", NULL);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static int cpu_reads(void)
{
    if (fixture_begin(true))
        return 1;
    signal(SIGSEGV, SIG_DFL);
    signal(SIGBUS, SIG_DFL);
    *(volatile char *)(uintptr_t)dev;
    return 0;
}

static int cpu_writes(void)
{
    if (fixture_begin(true))
        return 1;
    signal(SIGSEGV, SIG_DFL);
    signal(SIGBUS, SIG_DFL);
    *(volatile char *)(uintptr_t)(dev + 5) = 1;
    return 0;
}

static int memory(void)
{
    CUdeviceptr a, b, base;
    CUcontext context;
    size_t bytes;
    unsigned long long first, second;
    unsigned type;
    if (fixture_begin(true))
        return 1;
    IS(cu.cuMemAlloc_v2(&a, 0), CUDA_ERROR_INVALID_VALUE);
    IS(cu.cuMemAlloc_v2(&a, (size_t)1 << 50), CUDA_ERROR_OUT_OF_MEMORY);
    OK(cu.cuMemAlloc_v2(&a, 1000));
    OK(cu.cuMemGetAddressRange_v2(&base, &bytes, a + 999));
    IS(base, a);
    IS(bytes, 1000);
    IS(cu.cuMemGetAddressRange_v2(&base, &bytes, a + 1000), CUDA_ERROR_NOT_FOUND);
    OK(cu.cuCtxGetCurrent(&context));
    OK(cu.cuCtxSetCurrent(NULL));               /* a thread without a context may ask less */
    IS(cu.cuMemGetAddressRange_v2(&base, &bytes, a), CUDA_ERROR_INVALID_CONTEXT);
    OK(cu.cuPointerGetAttribute(&first, CU_POINTER_ATTRIBUTE_BUFFER_ID, a));
    OK(cu.cuCtxSetCurrent(context));
    OK(cu.cuPointerGetAttribute(&first, CU_POINTER_ATTRIBUTE_BUFFER_ID, a + 1));
    IS(cu.cuMemFree_v2(a + 512), CUDA_ERROR_INVALID_VALUE);
    OK(cu.cuMemFree_v2(a));
    IS(cu.cuMemFree_v2(a), CUDA_ERROR_INVALID_VALUE);
    OK(cu.cuMemAlloc_v2(&b, 1000));
    IS(a, b);                                   /* the address comes again, the number does not */
    OK(cu.cuPointerGetAttribute(&second, CU_POINTER_ATTRIBUTE_BUFFER_ID, b));
    YES(first != second);
    IS(cu.cuMemsetD8Async(b, 0, 1001, s1), CUDA_ERROR_INVALID_VALUE);
    IS(cu.cuMemcpyHtoDAsync_v2(b, (void *)(uintptr_t)b, 10, s1), CUDA_ERROR_INVALID_VALUE);
    IS(cu.cuMemcpyDtoHAsync_v2(host, (uintptr_t)host, 10, s1), CUDA_ERROR_INVALID_VALUE);
    OK(cu.cuMemcpyAsync((uintptr_t)host, b, 1000, s1));
    OK(cu.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, b));
    IS(type, CU_MEMORYTYPE_DEVICE);
    OK(cu.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (uintptr_t)host + 1));
    IS(type, CU_MEMORYTYPE_HOST);
    IS(cu.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (uintptr_t)&type),
       CUDA_ERROR_INVALID_VALUE);
    OK(cu.cuPointerGetAttributes(1, (int[]){ CU_POINTER_ATTRIBUTE_MEMORY_TYPE },
                                 (void *[]){ &type }, (uintptr_t)&type));
    IS(type, 0);
    return fixture_end();
}

static int registration(void)
{
    CUdeviceptr at;
    if (fixture_begin(true))
        return 1;
    unsigned char *other = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
                                0);
    IS(cu.cuMemHostRegister_v2(host, BYTES, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    IS(cu.cuMemHostRegister_v2(host + BYTES, 1, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    IS(cu.cuMemHostRegister_v2(NULL, BYTES, 0), CUDA_ERROR_INVALID_VALUE);
    IS(cu.cuMemHostRegister_v2(other, 0, 0), CUDA_ERROR_INVALID_VALUE);
    OK(cu.cuMemHostGetDevicePointer_v2(&at, host + 10, 0));
    YES(at != (uintptr_t)host + 10);
    IS(cu.cuMemHostGetDevicePointer_v2(&at, other, 0), CUDA_ERROR_INVALID_VALUE);
    IS(cu.cuMemHostUnregister(other), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    OK(cu.cuMemHostRegister_v2(other + 100, BYTES - 100, CU_MEMHOSTREGISTER_PORTABLE));
    OK(cu.cuMemHostUnregister(other + 100));
    munmap(other, BYTES);
    /* nothing is mapped there */
    IS(cu.cuMemHostRegister_v2(other, BYTES, 0), CUDA_ERROR_INVALID_VALUE);
    return fixture_end();
}

static int created(void)
{
    CUmemGenericAllocationHandle h, again;
    CUmemAllocationProp prop = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
        .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 }
    };
    CUmemAccessDesc access = { { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
                               CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
    CUdeviceptr at, start;
    CUcontext context = (CUcontext)(uintptr_t)1;
    size_t grain;
    unsigned long long types = 0;
    unsigned legacy = 1;
    int fd;
    if (fixture_begin(true))
        return 1;
    OK(cu.cuMemGetAllocationGranularity(&grain, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    IS(cu.cuMemCreate(&h, grain - 1, &prop, 0), CUDA_ERROR_INVALID_VALUE);
    OK(cu.cuMemCreate(&h, grain, &prop, 0));
    OK(cu.cuMemAddressReserve(&at, 2 * grain, 0, 0, 0));
    IS(cu.cuMemsetD8Async(at, 1, 1, s1), CUDA_ERROR_INVALID_VALUE);
    OK(cu.cuMemMap(at + grain, grain, 0, h, 0));
    IS(cu.cuMemMap(at + grain, grain, 0, h, 0), CUDA_ERROR_ALREADY_MAPPED);
    IS(cu.cuMemsetD8Async(at + grain, 1, 1, s1), CUDA_ERROR_INVALID_VALUE);      /* no access yet */
    OK(cu.cuMemSetAccess(at + grain, grain, &access, 1));
    OK(cu.cuMemsetD8Async(at + grain, 0x21, BYTES, s1));
    OK(cu.cuStreamSynchronize(s1));
    OK(cu.cuPointerGetAttribute(&types, CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, at + grain));
    IS(types, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    OK(cu.cuPointerGetAttribute(&legacy, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE,
                                at + grain));
    IS(legacy, 0);
    OK(cu.cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, at + grain));
    YES(context == NULL);
    OK(cu.cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, at + grain));
    IS(start, at);
    OK(cu.cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)(at + grain)));
    OK(cu.cuMemExportToShareableHandle(&fd, again, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    OK(cu.cuMemRelease(again));
    YES(tell_fd(fd));
    close(fd);
    char go;
    YES(hear(&go, 1));
    OK(cu.cuMemUnmap(at + grain, grain));
    OK(cu.cuMemRelease(h));
    IS(cu.cuMemRelease(h), CUDA_ERROR_INVALID_VALUE);
    OK(cu.cuMemAddressFree(at, 2 * grain));
    return fixture_end();
}

static int imported(void)
{
    CUmemGenericAllocationHandle h;
    CUmemAccessDesc access = { { CU_MEM_LOCATION_TYPE_DEVICE, 0 }, CU_MEM_ACCESS_FLAGS_PROT_READ };
    CUdeviceptr at;
    size_t grain = 2 << 20;
    if (fixture_begin(true))
        return 1;
    int fd = hear_fd();
    YES(fd >= 0);
    OK(cu.cuMemImportFromShareableHandle(&h, (void *)(intptr_t)fd,
                                         CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    close(fd);
    IS(cu.cuMemImportFromShareableHandle(&h, (void *)(intptr_t)0,
                                         CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
       CUDA_ERROR_INVALID_VALUE);
    OK(cu.cuMemAddressReserve(&at, grain, 0, 0, 0));
    OK(cu.cuMemMap(at, grain, 0, h, 0));
    OK(cu.cuMemSetAccess(at, grain, &access, 1));
    OK(cu.cuMemcpyDtoHAsync_v2(host, at, BYTES, s1));
    IS(cu.cuMemsetD8Async(at, 1, 1, s1), CUDA_ERROR_INVALID_VALUE);         /* for reading only */
    OK(cu.cuStreamSynchronize(s1));
    IS(host[0], 0x21);
    IS(host[BYTES - 1], 0x21);
    YES(tell("g", 1));
    OK(cu.cuMemUnmap(at, grain));
    OK(cu.cuMemAddressFree(at, grain));
    OK(cu.cuMemRelease(h));
    return fixture_end();
}

static void memory_is_as_cudas(void **state)
{
    (void)state;
    assert_int_equal(case_run(cpu_reads, (const char *const[]){ NULL }), 128 + SIGSEGV);
    assert_int_equal(case_run(cpu_writes, (const char *const[]){ NULL }), 128 + SIGSEGV);
    PASSES(memory, NULL);
    PASSES(registration, NULL);
    PAIR_PASSES(created, imported, NULL);
}

/* ---- streams and events ---------------------------------------------------------------------- */

static int streams(void)
{
    CUevent a, b;
    CUcontext context, mine;
    float ms = -1;
    int capturing = 7;
    if (fixture_begin(true))
        return 1;
    OK(cu.cuEventCreate(&a, 0));
    OK(cu.cuEventCreate(&b, 0));
    OK(cu.cuEventQuery(a));                          /* of a thing never recorded */
    OK(cu.cuStreamWaitEvent(s2, a, 0));
    IS(cu.cuEventElapsedTime(&ms, a, b), CUDA_ERROR_INVALID_HANDLE);
    fake.fakeHold(s1, 1);
    OK(cu.cuEventRecord(a, s1));
    OK(cu.cuMemsetD8Async(dev, 1, BYTES, s1));
    OK(cu.cuEventRecord(b, s1));
    OK(cu.cuStreamWaitEvent(s2, b, 0));
    OK(cu.cuMemsetD8Async(dev, 2, BYTES, s2));
    IS(cu.cuEventQuery(b), CUDA_ERROR_NOT_READY);
    IS(cu.cuStreamQuery(s1), CUDA_ERROR_NOT_READY);
    IS(cu.cuStreamQuery(s2), CUDA_ERROR_NOT_READY);
    IS(cu.cuEventElapsedTime(&ms, a, b), CUDA_ERROR_NOT_READY);
    fake.fakeHold(s1, 0);
    OK(cu.cuEventSynchronize(b));
    OK(cu.cuEventElapsedTime(&ms, a, b));
    YES(ms >= 0);
    OK(cu.cuStreamSynchronize(s2));
    IS(*(unsigned char *)fake.fakePeek(dev), 2);
    IS(cu.cuEventCreate(&a, CU_EVENT_INTERPROCESS), CUDA_ERROR_INVALID_VALUE);
    OK(cu.cuStreamGetCtx(s1, &context));
    OK(cu.cuCtxGetCurrent(&mine));
    YES(context == mine);
    OK(cu.cuStreamIsCapturing(s1, &capturing));
    IS(capturing, CU_STREAM_CAPTURE_STATUS_NONE);
    fake.fakeCapture(s1, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    OK(cu.cuStreamIsCapturing(s1, &capturing));
    IS(capturing, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    IS(cu.cuStreamQuery((CUstream)(void *)&ms), CUDA_ERROR_INVALID_HANDLE);
    return fixture_end();
}

/* A stream belongs to its context; its events, too. */
static int two_devices(void)
{
    CUcontext first, second;
    CUstream s;
    CUevent e;
    CUdeviceptr far;
    CUfunction f;
    if (fixture_begin(true))
        return 1;
    OK(cu.cuCtxGetCurrent(&first));
    YES(f = fixture_fold(TUTTI_U8, TUTTI_SUM));
    OK(cu.cuEventCreate(&e, 0));
    OK(cu.cuDevicePrimaryCtxRetain(&second, 1));
    OK(cu.cuCtxPushCurrent_v2(second));
    OK(cu.cuStreamCreateWithPriority(&s, CU_STREAM_NON_BLOCKING, -1));
    OK(cu.cuMemAlloc_v2(&far, BYTES));
    OK(cu.cuMemsetD8Async(far, 0x66, BYTES, s));
    IS(cu.cuEventRecord(e, s), CUDA_ERROR_INVALID_HANDLE);
    IS(cu.cuMemsetD8Async(far, 0, BYTES, s1), CUDA_ERROR_INVALID_HANDLE);
    OK(cu.cuStreamSynchronize(s));
    OK(cu.cuCtxPopCurrent_v2(NULL));
    OK(cu.cuMemcpyPeerAsync(dev, first, far, second, BYTES, s1));
    OK(cu.cuStreamSynchronize(s1));
    IS(*(unsigned char *)fake.fakePeek(dev + BYTES - 1), 0x66);
    OK(cu.cuCtxEnablePeerAccess(second, 0));
    struct kernel_fold fold = { .out = dev2, .count = BYTES, .inputs = 1, .in = { far } };
    OK(cu.cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, s1, (void *[]){ &fold }, NULL));
    OK(cu.cuStreamSynchronize(s1));
    IS(*(unsigned char *)fake.fakePeek(dev2), 0x66);
    OK(cu.cuMemFree_v2(far));
    return fixture_end();
}

/* Not the work that touches what is given back: all of the context's. */
static int giving_back_waits(void)
{
    CUdeviceptr apart;
    if (fixture_begin(true))
        return 1;
    OK(cu.cuMemAlloc_v2(&apart, 4096));
    OK(cu.cuMemsetD8Async(dev, 1, BYTES, s1));
    OK(cu.cuMemFree_v2(apart));
    OK(cu.cuStreamQuery(s1));
    OK(cu.cuMemcpyDtoHAsync_v2(host, dev, BYTES, s1));
    OK(cu.cuStreamSynchronize(s1));
    return fixture_end();
}

static void streams_are_as_cudas(void **state)
{
    (void)state;
    PASSES(streams, "FAKE_CUDA_DELAY_US=300", NULL);
    PASSES(giving_back_waits, "FAKE_CUDA_DELAY_US=20000", NULL);
    PASSES(two_devices, "FAKE_CUDA_DEVICES=2", "FAKE_CUDA_DELAY_US=300", NULL);
}

int main(int argc, char **argv)
{
    (void)argc;
    if (case_needs_fake("shows its memory to the CPU"))
        return CASE_SKIP;
    cases_with(argv, "fake_cuda");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(begins_and_fails_as_cuda_does),
        cmocka_unit_test(memory_is_as_cudas),
        cmocka_unit_test(streams_are_as_cudas),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
