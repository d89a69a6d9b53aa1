/* libcuda.so.1 for the tests: CUDA's driver interface without a GPU, as far as we use it, strict
 * about how it is used.
 *
 * LD_LIBRARY_PATH chooses it; <build>/fake_cuda is where it lies. In this file: begin, devices,
 * contexts, names of errors. Its behaviour is set by the environment, read at cuInit:
 *   FAKE_CUDA_DEVICES=n      how many GPUs the machine has, 1 by default; 0: cuInit answers 100
 *   CUDA_VISIBLE_DEVICES     which of them this process sees, in which order: "1,0"
 *   FAKE_CUDA_DELAY_US=n     before each operation of a stream: a random time up to n microseconds;
 *                            0 by default
 *   FAKE_CUDA_SEED=n         of those
 *   FAKE_CUDA_FAIL=symbol:nth:error,...    see enter.c
 *   FAKE_CUDA_STUB=1         every call answers 34, as in the toolkit's stub library
 *   FAKE_CUDA_PINNED=require an asynchronous copy from or to host memory that is not
 *   registered is misuse
 *   FAKE_CUDA_PEER=0         no GPU can reach another one's memory
 *   FAKE_CUDA_LINK=pcie      they reach each other by PCIe; by NVLink by default
 *   FAKE_CUDA_LIES=...       one can, and reads other bytes: lie.c
 *   FAKE_CUDA_EXCLUSIVE=path compute mode exclusive: a GPU's contexts are of one process at a time,
 *   who has locked path.<number of the GPU>
 *   FAKE_CUDA_PAGE=n         what the host's kernel pins at a time; 4096 by default
 *   FAKE_CUDA_NUMA=n         the host's NUMA node of all GPUs; none by default
 *   FAKE_CUDA_POISON=0       do not fill the destination of a copy with garbage before the copy
 *   FAKE_CUDA_DRAIN=0        cuMemFree, cuIpcCloseMemHandle, cuMemHostUnregister and
 *                            cuModuleUnload do not wait for all that is under way in the context,
 *                            as an H100's driver does; threads that give it work meanwhile wait
 *                            for them
 *   FAKE_CUDA_DRAIN=loads    what loads a kernel (cuModuleLoadData, the first cuModuleGetFunction)
 *                            waits so, too
 *   FAKE_CUDA_MISUSE=report  misuse is told and counted, and the process goes on
 *   FAKE_CUDA_END=lax        what is still registered or open when the process ends is
 *                            not looked at
 *
 * Streams are threads. The NULL stream is CUDA's legacy default stream: an operation in it waits
 * for all earlier ones in the context's blocking streams, and theirs for its earlier ones; streams
 * made with CU_STREAM_NON_BLOCKING take no part in that. */
#include "fake/fake.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

static _Thread_local struct { struct CUctx_st *at[CONTEXTS_DEEP]; int depth; } current;

static long environment(const char *name, long otherwise)
{
    const char *s = getenv(name);
    return s && *s ? strtol(s, NULL, 10) : otherwise;
}

static bool environment_is(const char *name, const char *value)
{
    const char *s = getenv(name);
    return s && !strcmp(s, value);
}

static void see_devices(int count)
{
    const char *s = getenv("CUDA_VISIBLE_DEVICES");
    fake.devices = 0;
    for (int i = 0; !s && i < count; i++)
        fake.physical[fake.devices++] = i;
    while (s && *s >= '0' && *s <= '9' && fake.devices < DEVICES_MOST) {
        char *end;
        long i = strtol(s, &end, 10);
        if (i >= count)
            break;
        fake.physical[fake.devices++] = (int)i;
        s = *end == ',' ? end + 1 : NULL;
    }
}

CUresult cuInit(unsigned flags)
{
    ENTER;
    if (flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (fake.ready)
        return 0;
    long count = environment("FAKE_CUDA_DEVICES", 1);
    see_devices(count > DEVICES_MOST ? DEVICES_MOST : (int)count);
    if (!fake.devices)
        return CUDA_ERROR_NO_DEVICE;
    for (int i = 0; i < fake.devices; i++)
        fake.context[i].device = i;
    fake.delay_us = (unsigned)environment("FAKE_CUDA_DELAY_US", 0);
    fake.seed = (uint64_t)environment("FAKE_CUDA_SEED", 1);
    fake.report_only = environment_is("FAKE_CUDA_MISUSE", "report");
    fake.pinned_only = environment_is("FAKE_CUDA_PINNED", "require");
    fake.no_poison = environment_is("FAKE_CUDA_POISON", "0");
    fake.drain = !environment_is("FAKE_CUDA_DRAIN", "0");
    fake.drain_loads = environment_is("FAKE_CUDA_DRAIN", "loads");
    fake.page = (uintptr_t)environment("FAKE_CUDA_PAGE", PAGE);
    fake.pid = getpid();
    fake.ready = true;
    return 0;
}

CUresult cuDriverGetVersion(int *version)
{
    ENTER;
    *version = 12080;
    return 0;
}

static const struct { CUresult error; const char *name, *words; } errors[] = {
    { 0, "CUDA_SUCCESS", "no error" },
    { 1, "CUDA_ERROR_INVALID_VALUE", "invalid argument" },
    { 2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory" },
    { 3, "CUDA_ERROR_NOT_INITIALIZED", "initialization error" },
    { 34, "CUDA_ERROR_STUB_LIBRARY", "CUDA driver is a stub library" },
    { 46, "CUDA_ERROR_DEVICE_UNAVAILABLE", "CUDA-capable device(s) is/are busy or unavailable" },
    { 100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected" },
    { 101, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal" },
    { 200, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid" },
    { 201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context" },
    { 208, "CUDA_ERROR_ALREADY_MAPPED", "resource already mapped" },
    { 217, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED",
      "peer access is not supported between these two devices" },
    { 218, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed" },
    { 221, "CUDA_ERROR_JIT_COMPILER_NOT_FOUND", "PTX JIT compiler library not found" },
    { 304, "CUDA_ERROR_OPERATING_SYSTEM", "OS call failed or operation not supported on this OS" },
    { 400, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle" },
    { 500, "CUDA_ERROR_NOT_FOUND", "named symbol not found" },
    { 600, "CUDA_ERROR_NOT_READY", "device not ready" },
    { 700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered" },
    { 704, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", "peer access is already enabled" },
    { 709, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "context is destroyed" },
    { 712, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED",
      "part or all of the requested memory range is already mapped" },
    { 713, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED",
      "pointer does not correspond to a registered memory region" },
    { 719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure" },
    { 801, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported" },
    { 900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
      "operation not permitted when stream is capturing" },
    { 901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
      "operation failed due to a previous error during capture" },
    { 906, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT",
      "operation would make the legacy stream depend on a capturing blocking stream" },
    { 803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
      "system has unsupported display driver / cuda driver combination" },
    { 999, "CUDA_ERROR_UNKNOWN", "unknown error" },
};

static CUresult error_row(CUresult error, const char **name, const char **words)
{
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
        if (errors[i].error == error) {
            if (name)
                *name = errors[i].name;
            if (words)
                *words = errors[i].words;
            return 0;
        }
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorName(CUresult error, const char **name)
{
    ENTER;
    return error_row(error, name, NULL);
}

CUresult cuGetErrorString(CUresult error, const char **words)
{
    ENTER;
    return error_row(error, NULL, words);
}

/* ---- devices --------------------------------------------------------------------------------- */

static bool is_device(CUdevice device)
{
    return device >= 0 && device < fake.devices;
}

CUresult cuDeviceGetCount(int *count)
{
    ENTER;
    *count = fake.devices;
    return 0;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    ENTER;
    if (!is_device(ordinal))
        return CUDA_ERROR_INVALID_DEVICE;
    *device = ordinal;
    return 0;
}

CUresult cuDeviceGetName(char *name, int room, CUdevice device)
{
    ENTER;
    if (!is_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    snprintf(name, (size_t)room, "Fake GPU %c", 'A' + fake.physical[device]);
    return 0;
}

CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device)
{
    ENTER;
    if (!is_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    memset(uuid->bytes, 0xfa, sizeof uuid->bytes);
    uuid->bytes[15] = (unsigned char)fake.physical[device];
    return 0;
}

CUresult cuDeviceGetPCIBusId(char *id, int room, CUdevice device)
{
    ENTER;
    if (!is_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    snprintf(id, (size_t)room, "0000:%02X:00.0", 0x10 + fake.physical[device]);
    return 0;
}

CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device)
{
    static const int known[][2] = {
        { CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 4 }, { CU_DEVICE_ATTRIBUTE_INTEGRATED, 0 },
        { CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1 },
        { CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, CU_COMPUTEMODE_DEFAULT },
        { CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 2 },
        { CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1 },
        { CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9 },
        { CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0 },
        { CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 0 },
        { CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 1 },
        { CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1 },
        { CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 1 },
        { CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED, 1 },
    };
    ENTER;
    if (!is_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    if (attribute == CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID && getenv("FAKE_CUDA_NUMA")) {
        *value = (int)environment("FAKE_CUDA_NUMA", -1);
        return 0;
    }
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i][0] == attribute) {
            bool exclusive = attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_MODE
                && getenv("FAKE_CUDA_EXCLUSIVE");
            *value = exclusive ? CU_COMPUTEMODE_EXCLUSIVE_PROCESS : known[i][1];
            return 0;
        }
    return CUDA_ERROR_INVALID_VALUE;
}

static bool reaches(CUdevice device, CUdevice peer)
{
    /* a device is not its own peer */
    return device != peer && environment("FAKE_CUDA_PEER", 1) != 0;
}

CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer)
{
    ENTER;
    if (!is_device(device) || !is_device(peer))
        return CUDA_ERROR_INVALID_DEVICE;
    *can = reaches(device, peer);
    return 0;
}

/* Atomics are what NVLink carries and PCIe does not. */
CUresult cuDeviceGetP2PAttribute(int *value, int attribute, CUdevice reader, CUdevice owner)
{
    ENTER;
    if (!is_device(reader) || !is_device(owner) || reader == owner)
        return CUDA_ERROR_INVALID_DEVICE;
    if (attribute != CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED)
        return CUDA_ERROR_INVALID_VALUE;
    *value = reaches(reader, owner) && !environment_is("FAKE_CUDA_LINK", "pcie");
    return 0;
}

/* ---- contexts: a device's primary one, which the runtime and all libraries share, and those that
 * a program makes. A copy in one reaches memory of another one, as with an H100's driver (580). A
 * kernel does not, by CUDA's documents; there it does ---- */

static bool is_context(const struct CUctx_st *context)
{
    for (int i = 0; i < fake.devices; i++)
        if (context == &fake.context[i])
            return true;
    return context >= fake.other && context < fake.other + CONTEXTS_MOST;
}

CUresult cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device)
{
    ENTER;
    if (flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (!is_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    struct CUctx_st *c = fake.other;
    while (c < fake.other + CONTEXTS_MOST && c->made)
        c++;
    if (c == fake.other + CONTEXTS_MOST || current.depth == CONTEXTS_DEEP)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *c = (struct CUctx_st){ .device = device, .retained = 1, .made = true };
    *context = current.at[current.depth++] = c;
    return 0;
}

CUresult cuCtxDestroy_v2(CUcontext context)
{
    ENTER;
    if (context < fake.other || context >= fake.other + CONTEXTS_MOST || !context->retained)
        return CUDA_ERROR_INVALID_CONTEXT;
    context->retained = 0;
    if (current.depth && current.at[current.depth - 1] == context)
        current.depth--;
    return 0;
}

/* The kernel unlocks it when this process ends, however it does. */
static CUresult sit_down(struct CUctx_st *context)
{
    const char *path = getenv("FAKE_CUDA_EXCLUSIVE");
    char name[4096];
    if (!path)
        return 0;
    snprintf(name, sizeof name, "%s.%d", path, fake.physical[context->device]);
    context->seat = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (context->seat < 0)
        return CUDA_ERROR_OPERATING_SYSTEM;
    if (flock(context->seat, LOCK_EX | LOCK_NB) == 0)
        return 0;
    close(context->seat);
    return CUDA_ERROR_DEVICE_UNAVAILABLE;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    ENTER;
    if (!is_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    if (!fake.context[device].retained) {
        CUresult error = sit_down(&fake.context[device]);
        if (error)
            return error;
    }
    fake.context[device].retained++;
    *context = &fake.context[device];
    return 0;
}

/* The last one gone, all that was made in it goes, and a new begin finds no error. Memory is not
 * looked after: it may be. */
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    ENTER;
    if (!is_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    struct CUctx_st *context = &fake.context[device];
    if (!context->retained)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (--context->retained == 0) {
        if (getenv("FAKE_CUDA_EXCLUSIVE"))
            close(context->seat);
        context->error = 0;
        context->told = NULL;
        memset(context->peer, 0, sizeof context->peer);
    }
    return 0;
}

CUresult context_check(struct CUctx_st *context, bool work)
{
    if (work)
        context_await(context);
    if (!context->retained)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if (context->error && context->told && work)
        fake_misuse("use after context error", "more work is given to device %d after %s said %d",
                    context->device, context->told, context->error);
    if (context->error && !context->told)
        context->told = fake_entered;
    return context->error;
}

CUresult context_seen(struct CUctx_st **context)
{
    if (!current.depth || !current.at[current.depth - 1])
        return CUDA_ERROR_INVALID_CONTEXT;
    *context = current.at[current.depth - 1];
    return (*context)->retained ? (*context)->error : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

CUresult context_current(struct CUctx_st **context, bool work)
{
    CUresult error = context_seen(context);
    return error == CUDA_ERROR_INVALID_CONTEXT ? error : context_check(*context, work);
}

void context_poison(struct CUctx_st *context, CUresult error)
{
    if (!context->error)
        context->error = error;
    pthread_cond_broadcast(&fake.ended);
}

CUresult cuCtxGetCurrent(CUcontext *context)
{
    ENTER;
    *context = current.depth ? current.at[current.depth - 1] : NULL;
    return 0;
}

CUresult cuCtxSetCurrent(CUcontext context)
{
    ENTER;
    if (context && !is_context(context))
        return CUDA_ERROR_INVALID_CONTEXT;
    if (context && !context->retained)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if (!current.depth)
        current.depth = 1;
    current.at[current.depth - 1] = context;
    return 0;
}

CUresult cuCtxPushCurrent_v2(CUcontext context)
{
    ENTER;
    if (!is_context(context))
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!context->retained)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if (current.depth == CONTEXTS_DEEP)
        return CUDA_ERROR_INVALID_VALUE;
    current.at[current.depth++] = context;
    return 0;
}

CUresult cuCtxPopCurrent_v2(CUcontext *context)
{
    ENTER;
    if (!current.depth)
        return CUDA_ERROR_INVALID_CONTEXT;
    current.depth--;
    if (context)
        *context = current.at[current.depth];
    return 0;
}

CUresult cuCtxGetDevice(CUdevice *device)
{
    ENTER;
    struct CUctx_st *context = NULL;
    CUresult error = context_seen(&context);
    if (!context)
        return error;
    *device = context->device;
    return 0;
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags)
{
    ENTER;
    struct CUctx_st *context = NULL;
    CUresult error = context_current(&context, false);
    if (error)
        return error;
    if (flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (!is_context(peer) || peer == context)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!reaches(context->device, peer->device))
        return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    if (context->peer[peer->device])
        return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
    context->peer[peer->device] = true;
    return 0;
}

CUresult cuCtxSynchronize(void)
{
    ENTER;
    struct CUctx_st *context = NULL;
    CUresult error = context_current(&context, false);
    if (error)
        return error;
    for (int i = 0; i < fake.streams; i++)
        if (fake.stream[i]->context == context) {
            CUresult r = stream_wait(fake.stream[i], fake.stream[i]->enqueued);
            error = error ? error : r;
        }
    return error;
}

/* ---- the end --------------------------------------------------------------------------------- */

/* What a process that ends by itself has forgotten. A forked one, or one that ends by _exit, is
 * not asked. */
__attribute__((destructor)) static void at_end(void)
{
    if (!fake.ready || fake.pid != getpid() || environment_is("FAKE_CUDA_END", "lax"))
        return;
    pthread_mutex_lock(&fake.lock);
    fake_end_check();
    bool bad = fake.misuses > 0;
    pthread_mutex_unlock(&fake.lock);
    if (bad)
        _exit(FAKE_MISUSE_STATUS);
}
