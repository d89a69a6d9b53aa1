/* What the calls cost that src/gpu makes: a line each, in a table of words and as JSON lines.
 * <build>/perf/device_costs [FILE]: the first GPU; never fails where there is one. Each group is a
 * process of its own, or two, with half a minute. An importer is timed, its owner only lends. */
#include "device/spin.h"

#include "base/atomic.h"
#include "gpu/driver.h"
#include "gpu/ptx.h"
#include "harness/series.h"
#include "harness/stamp.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SKIP = 77, LIFE_S = 30, KIBI = 1 << 10, MEBI = 1 << 20, MANY = 1000, SOME = 15 };
#define GIBI ((size_t)1 << 30)

static const struct cuda_api *cu;
static CUcontext context;
static CUstream stream;
static struct spin spin, beside;                     /* for another stream */
static FILE *file;
static bool slow;                                   /* not a GPU: sizes and times are kept small */

static void line(const char *what, double ns, double low, double high, int samples)
{
    printf("%-84s %12.2f us", what, ns * 1e-3);
    if (samples > 1)
        printf("   (%.2f to %.2f)", low * 1e-3, high * 1e-3);
    printf("\n");
    fflush(stdout);
    if (file) {
        fprintf(file, "{\"what\": \"%s\", \"ns\": %.1f, \"low_ns\": %.1f, \"high_ns\": %.1f, "
                "\"samples\": %d}\n", what, ns, low, high, samples);
        fflush(file);
    }
}

static void say(struct series *s, const char *format, ...)
{
    char what[160];
    va_list list;
    va_start(list, format);
    vsnprintf(what, sizeof what, format, list);
    va_end(list);
    if (s->n)
        line(what, series_median(s), series_quantile(s, 0.25), series_quantile(s, 0.75), (int)s->n);
    else
        printf("%-84s            -\n", what);
    s->n = 0;
}

static void refused(const char *what, CUresult error)
{
    printf("%s: CUDA error %d\n", what, error);
}

static double ns_since(uint64_t begin) { return stamp_ns(stamp_now() - begin); }

static uint64_t began;                               /* of the process's first thread */

static CUresult took(struct series *s, const char *call, CUresult error)
{
    double ns = ns_since(began);
    if (error)
        refused(call, error);
    else
        series_add(s, ns);
    return error;
}

#define TIMED(series, call_) (began = stamp_now(), took(series, #call_, cu->call_))

static bool begin(void)
{
    const struct driver *driver;
    char words[300];
    struct text why = TEXT_IN(words);
    text_clear(&why);
    alarm(LIFE_S);
    uint64_t start = stamp_now();
    struct series s = { NULL, 0, 0 };
    if (driver_open(&driver, &why) < 0) {
        fprintf(stderr, "%s\n", words);
        return false;
    }
    cu = &driver->call;
    if (cu->cuDevicePrimaryCtxRetain(&context, 0) || cu->cuCtxSetCurrent(context)
        || cu->cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING))
        return false;
    series_add(&s, ns_since(start));
    slow = dlsym(dlopen("libcuda.so.1", RTLD_NOW), "fakeHold") != NULL;
    if (spin_open(&spin, cu, stream))
        printf("no kernel to keep the GPU busy\n");
    else
        spin_beside(&beside, &spin);
    series_free(&s);
    return true;
}

/* ---- calls that take no time ----------------------------------------------------------------- */

static void busy(double ms)
{
    if (spin.function)
        spin_start(&spin, slow ? 0.1 : ms, stream);
}

#define EACH(text_, call_) \
    do { \
        CUresult said_ = 0; \
        for (int i_ = 0; i_ < MANY / 10 && !said_; i_++) { \
            uint64_t begin_ = stamp_now(); \
            for (int j_ = 0; j_ < 10; j_++) \
                said_ = call_; \
            if (said_ == CUDA_ERROR_NOT_READY) \
                said_ = 0; \
            series_add(&s, ns_since(begin_) / 10); \
        } \
        if (said_) { \
            refused(#call_, said_); \
            s.n = 0; \
        } else \
            say(&s, text_); \
    } while (0)

static CUresult push_pop(void)
{
    CUresult error = cu->cuCtxPushCurrent_v2(context);
    return error ? error : cu->cuCtxPopCurrent_v2(NULL);
}

static void small(void)
{
    struct series s = { NULL, 0, 0 };
    CUdeviceptr at = 0, base;
    CUevent event;
    size_t bytes;
    int kinds[] = { 1, 2, 3, 7, 8, 9, 10, 11, 12, 14 };
    unsigned long long room[10];
    void *values[10];
    for (int i = 0; i < 10; i++)
        values[i] = &room[i];
    if (!begin() || cu->cuMemAlloc_v2(&at, 2 * MEBI) || cu->cuEventCreate(&event, 2))
        return;
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cu->cuEventRecord(event, stream);
    cu->cuStreamSynchronize(stream);
    EACH("cuCtxPushCurrent and cuCtxPopCurrent", push_pop());
    EACH("cuEventQuery, done", cu->cuEventQuery(event));
    EACH("cuStreamQuery, idle", cu->cuStreamQuery(stream));
    EACH("cuPointerGetAttributes, ten of a device's", cu->cuPointerGetAttributes(10, kinds, values,
                                                                                at));
    EACH("cuPointerGetAttributes, ten of the host's",
         cu->cuPointerGetAttributes(10, kinds, values, (CUdeviceptr)(uintptr_t)page));
    EACH("cuMemGetAddressRange", cu->cuMemGetAddressRange_v2(&base, &bytes, at));
    EACH("cuEventRecord", cu->cuEventRecord(event, stream));
    cu->cuStreamSynchronize(stream);
    busy(100);
    cu->cuEventRecord(event, stream);
    EACH("cuEventQuery, not done", cu->cuEventQuery(event));
    EACH("cuStreamQuery, busy", cu->cuStreamQuery(stream));
    cu->cuStreamSynchronize(stream);
    for (int i = 0; i < SOME; i++) {
        CUevent e;
        TIMED(&s, cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
        cu->cuEventDestroy_v2(e);
    }
    say(&s, "cuEventCreate");
    for (int i = 0; i < SOME; i++) {
        CUstream other;
        TIMED(&s, cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
        cu->cuStreamDestroy_v2(other);
    }
    say(&s, "cuStreamCreate");
    for (int i = 0; i < SOME; i++) {
        CUipcMemHandle handle;
        TIMED(&s, cuIpcGetMemHandle(&handle, at));
    }
    say(&s, "cuIpcGetMemHandle");
    series_free(&s);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void memory(void)
{
    static const size_t sizes[] = { 2 * MEBI, 64 * MEBI, GIBI };
    struct series s = { NULL, 0, 0 }, freed = { NULL, 0, 0 }, waits = { NULL, 0, 0 },
                  takes = { NULL, 0, 0 };
    CUdeviceptr at;
    if (!begin())
        return;
    for (int k = 0; k < (slow ? 2 : 3); k++) {
        for (int i = 0; i < SOME; i++) {
            if (TIMED(&s, cuMemAlloc_v2(&at, sizes[k])) == 0)
                TIMED(&freed, cuMemFree_v2(at));
        }
        for (int i = 0; i < 3; i++) {
            busy(20);
            if (TIMED(&takes, cuMemAlloc_v2(&at, sizes[k])) == 0)
                cu->cuMemFree_v2(at);
            cu->cuStreamSynchronize(stream);
        }
        for (int i = 0; i < 3 && cu->cuMemAlloc_v2(&at, sizes[k]) == 0; i++) {
            busy(20);
            TIMED(&waits, cuMemFree_v2(at));
            cu->cuStreamSynchronize(stream);
        }
        say(&s, "cuMemAlloc of %zu MiB", sizes[k] / MEBI);
        say(&takes, "cuMemAlloc of %zu MiB, a kernel of 20 ms in the context", sizes[k] / MEBI);
        say(&freed, "cuMemFree of %zu MiB", sizes[k] / MEBI);
        say(&waits, "cuMemFree of %zu MiB, a kernel of 20 ms in the context", sizes[k] / MEBI);
    }
}

struct mapped { struct series create, map, access, unmap, give, busy; };

static void one_mapping(struct mapped *m, size_t bytes, CUdeviceptr at, bool while_busy)
{
    CUmemAllocationProp prop = { .type = 1, .requestedHandleTypes = 1, .location = { 1, 0 } };
    CUmemAccessDesc access = { { 1, 0 }, CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
    CUmemGenericAllocationHandle handle;
    int fd = -1;
    if (TIMED(&m->create, cuMemCreate(&handle, bytes, &prop, 0)))
        return;
    TIMED(&m->map, cuMemMap(at, bytes, 0, handle, 0));
    TIMED(&m->access, cuMemSetAccess(at, bytes, &access, 1));
    if (TIMED(&m->give, cuMemExportToShareableHandle(&fd, handle, 1, 0)) == 0)
        close(fd);
    if (while_busy)
        busy(20);
    TIMED(while_busy ? &m->busy : &m->unmap, cuMemUnmap(at, bytes));
    cu->cuStreamSynchronize(stream);
    cu->cuMemRelease(handle);
}

static void mapping(void)
{
    static const size_t sizes[] = { 2 * MEBI, 64 * MEBI, GIBI };
    struct mapped m = { 0 };
    CUdeviceptr at;
    if (!begin() || cu->cuMemAddressReserve(&at, GIBI, 0, 0, 0))
        return;
    for (int k = 0; k < (slow ? 2 : 3); k++) {
        for (int i = 0; i < SOME + 3; i++)
            one_mapping(&m, sizes[k], at, i >= SOME);
        say(&m.create, "cuMemCreate of %zu MiB", sizes[k] / MEBI);
        say(&m.map, "cuMemMap of %zu MiB", sizes[k] / MEBI);
        say(&m.access, "cuMemSetAccess of %zu MiB", sizes[k] / MEBI);
        say(&m.give, "cuMemExportToShareableHandle of %zu MiB", sizes[k] / MEBI);
        say(&m.unmap, "cuMemUnmap of %zu MiB", sizes[k] / MEBI);
        say(&m.busy, "cuMemUnmap of %zu MiB, a kernel of 20 ms in the context", sizes[k] / MEBI);
    }
}

/* ---- imports --------------------------------------------------------------------------------- */

static const size_t lent_sizes[] = { 2 * MEBI, 64 * MEBI, GIBI, 16 * GIBI };

static int lent_many(void) { return slow ? 2 : 4; }

static int lends(int peer)
{
    CUipcMemHandle handle;
    CUdeviceptr at;
    char go;
    if (!begin())
        return 1;
    for (int k = 0; k < lent_many(); k++) {
        if (cu->cuMemAlloc_v2(&at, lent_sizes[k]) || cu->cuIpcGetMemHandle(&handle, at)
            || send(peer, &handle, sizeof handle, MSG_NOSIGNAL) < 0
            || recv(peer, &go, 1, MSG_WAITALL) != 1)
            return 1;
        cu->cuMemFree_v2(at);
    }
    return 0;
}

/* Another thread starts small kernels all the time, and remembers the longest start. */
struct starter { pthread_t thread; shared32 stop; double longest; CUstream stream; };

static void *starts(void *arg)
{
    struct starter *t = arg;
    cu->cuCtxSetCurrent(context);
    while (!load_acquire32(&t->stop)) {
        uint64_t begin_ = stamp_now();
        spin_start(&beside, 0.0001, t->stream);
        double ns = ns_since(begin_);
        t->longest = ns > t->longest ? ns : t->longest;
        cu->cuStreamSynchronize(t->stream);
    }
    return NULL;
}

static void open_close(size_t bytes, CUipcMemHandle handle)
{
    struct series opened = { NULL, 0, 0 }, closed = { NULL, 0, 0 };
    struct series busy_open = { NULL, 0, 0 }, busy_close = { NULL, 0, 0 };
    struct series longest = { NULL, 0, 0 };
    CUdeviceptr at;
    for (int i = 0; i < SOME; i++)
        if (TIMED(&opened, cuIpcOpenMemHandle_v2(&at, handle, 1)) == 0)
            TIMED(&closed, cuIpcCloseMemHandle(at));
    for (int i = 0; i < 5; i++) {
        struct starter t = { .longest = 0 };
        if (cu->cuStreamCreate(&t.stream, CU_STREAM_NON_BLOCKING))
            break;
        busy(20);
        if (!spin.function || pthread_create(&t.thread, NULL, starts, &t))
            break;
        if (TIMED(&busy_open, cuIpcOpenMemHandle_v2(&at, handle, 1)) == 0)
            TIMED(&busy_close, cuIpcCloseMemHandle(at));
        store_release32(&t.stop, 1);
        pthread_join(t.thread, NULL);
        series_add(&longest, t.longest);
        cu->cuStreamSynchronize(stream);
        cu->cuStreamDestroy_v2(t.stream);
    }
    say(&opened, "cuIpcOpenMemHandle of %zu MiB", bytes / MEBI);
    say(&closed, "cuIpcCloseMemHandle of %zu MiB", bytes / MEBI);
    say(&busy_open, "cuIpcOpenMemHandle of %zu MiB, a kernel of 20 ms", bytes / MEBI);
    say(&busy_close, "cuIpcCloseMemHandle of %zu MiB, a kernel of 20 ms", bytes / MEBI);
    say(&longest, "longest cuLaunchKernel of another thread then, %zu MiB", bytes / MEBI);
}

static int borrows(int peer)
{
    CUipcMemHandle handle;
    if (!begin())
        return 1;
    for (int k = 0; k < lent_many(); k++) {
        if (recv(peer, &handle, sizeof handle, MSG_WAITALL) != sizeof handle)
            return 1;
        open_close(lent_sizes[k], handle);
        send(peer, "g", 1, MSG_NOSIGNAL);
    }
    return 0;
}

static void imports(void)
{
    int sockets[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets))
        return;
    pid_t pid = fork();
    close(sockets[pid == 0 ? 1 : 0]);
    if (pid == 0)
        _exit(lends(sockets[0]));
    borrows(sockets[1]);
    close(sockets[1]);
    waitpid(pid, NULL, 0);
}

/* ---- host memory, kernels -------------------------------------------------------------------- */

/* ---- small copies ---------------------------------------------------------------------------- */

enum way { TO_DEVICE, TO_HOST, TO_DEVICE_AS_DEVICE, TO_DEVICE_ANY, KERNEL, WAYS };
static const char *const way_names[WAYS] = {
    "cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync", "cuMemcpyDtoDAsync from the host's address",
    "cuMemcpyAsync to the device", "a kernel"
};

static CUresult copy(enum way way, CUdeviceptr d, char *host, CUdeviceptr seen, size_t bytes)
{
    switch (way) {
    case TO_DEVICE: return cu->cuMemcpyHtoDAsync_v2(d, host, bytes, stream);
    case TO_HOST: return cu->cuMemcpyDtoHAsync_v2(host, d, bytes, stream);
    case TO_DEVICE_AS_DEVICE: return cu->cuMemcpyDtoDAsync_v2(d, seen, bytes, stream);
    case TO_DEVICE_ANY: return cu->cuMemcpyAsync(d, seen, bytes, stream);
    case KERNEL: return spin.function ? spin_start(&spin, 0.0001, stream) : CUDA_ERROR_NOT_FOUND;
    case WAYS: break;
    }
    return CUDA_ERROR_UNKNOWN;
}

/* Out of registered memory and into it, and waited for. */
static void small_copies(const char *beside_what)
{
    static const size_t sizes[] = { 64, 4 * KIBI, 16 * KIBI, 32 * KIBI, 64 * KIBI, 256 * KIBI };
    struct series s = { NULL, 0, 0 };
    CUdeviceptr d, seen;
    char *at = mmap(NULL, MEBI, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (cu->cuMemAlloc_v2(&d, MEBI) || cu->cuMemHostRegister_v2(at, MEBI, 3)
        || cu->cuMemHostGetDevicePointer_v2(&seen, at, 0))
        return;
    for (int way = 0; way < WAYS; way++)
        for (size_t k = 0; k < (way == KERNEL ? 1 : sizeof sizes / sizeof sizes[0]); k++) {
            for (int i = 0; i < (slow ? 5 : 200); i++) {
                uint64_t start = stamp_now();
                if (copy((enum way)way, d, at, seen, sizes[k]) || cu->cuStreamSynchronize(stream))
                    break;
                series_add(&s, ns_since(start));
            }
            say(&s, "%s of %zu bytes, waited for%s", way_names[way], sizes[k], beside_what);
        }
}

static void copies_alone(void)
{
    if (begin())
        small_copies("");
}

/* Another process does the same all the time: what is done by the part of the GPU that runs kernels
 * waits until it is that process's turn no more; what a copy engine does does not. */
static void copies_beside(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        CUdeviceptr d;
        char *at = mmap(NULL, MEBI, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (!begin() || cu->cuMemAlloc_v2(&d, MEBI) || cu->cuMemHostRegister_v2(at, MEBI, 3))
            _exit(1);
        while (!copy(spin.function ? KERNEL : TO_DEVICE, d, at, 0, 64)
               && !cu->cuStreamSynchronize(stream))
            continue;
        _exit(0);
    }
    if (begin())
        small_copies(", another process with kernels");
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static void registering(void)
{
    struct series s = { NULL, 0, 0 }, gone = { NULL, 0, 0 };
    size_t bytes = 64 * MEBI;
    if (!begin())
        return;
    char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    memset(at, 1, bytes);
    for (int i = 0; i < 5; i++)
        if (TIMED(&s, cuMemHostRegister_v2(at, bytes, 3)) == 0)
            TIMED(&gone, cuMemHostUnregister(at));
    say(&s, "cuMemHostRegister of 64 MiB");
    say(&gone, "cuMemHostUnregister of 64 MiB");
    for (int i = 0; i < 5; i++) {
        busy(20);
        if (TIMED(&s, cuMemHostRegister_v2(at, bytes, 3)) == 0) {
            cu->cuStreamSynchronize(stream);
            busy(20);
            TIMED(&gone, cuMemHostUnregister(at));
        }
        cu->cuStreamSynchronize(stream);
    }
    say(&s, "cuMemHostRegister of 64 MiB, a kernel of 20 ms in the context");
    say(&gone, "cuMemHostUnregister of 64 MiB, a kernel of 20 ms in the context");
    CUdeviceptr d;
    if (cu->cuMemAlloc_v2(&d, bytes))
        return;
    for (int pinned = 0; pinned < 2; pinned++) {
        for (int i = 0; i < 5; i++) {
            uint64_t start = stamp_now();
            if (cu->cuMemcpyDtoHAsync_v2(at, d, bytes, stream) == 0
                && cu->cuStreamSynchronize(stream) == 0)
                series_add(&s, ns_since(start));
        }
        say(&s, "64 MiB to the host, %s", pinned ? "registered" : "not registered");
        cu->cuMemHostRegister_v2(at, bytes, 3);
    }
}

static void registering_at_once(void)
{
    enum { PROCESSES = 8 };
    struct shared { shared32 ready; double ns[PROCESSES]; } *all;
    struct series s = { NULL, 0, 0 };
    size_t bytes = 64 * MEBI;
    all = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (int r = 0; r < PROCESSES; r++)
        if (fork() == 0) {
            char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
            memset(at, 1, bytes);
            if (!begin())
                _exit(1);
            fetch_add32(&all->ready, 1);
            while (load_acquire32(&all->ready) < PROCESSES)
                usleep(100);
            uint64_t start = stamp_now();
            if (cu->cuMemHostRegister_v2(at, bytes, 3) == 0)
                all->ns[r] = ns_since(start);
            _exit(0);
        }
    while (wait(NULL) > 0)
        continue;
    for (int r = 0; r < PROCESSES; r++)
        if (all->ns[r] > 0)
            series_add(&s, all->ns[r]);
    say(&s, "cuMemHostRegister of 64 MiB by 8 processes at once");
}

static void kernels(void)
{
    struct series load = { NULL, 0, 0 }, first = { NULL, 0, 0 }, next = { NULL, 0, 0 };
    struct series again = { NULL, 0, 0 }, full = { NULL, 0, 0 };
    static const tutti_type types[] = { TUTTI_F32, TUTTI_BF16, TUTTI_F64, TUTTI_F16, TUTTI_I32 };
    static char room[PTX_ROOM];
    char name[PTX_NAME];
    if (!begin())
        return;
    for (int i = 0; i < 5; i++) {
        struct text text = TEXT_IN(room), called = TEXT_IN(name);
        CUmodule module;
        CUfunction f;
        text_clear(&text);
        text_clear(&called);
        ptx_fold(&text, types[i], TUTTI_SUM);
        ptx_name(&called, types[i], TUTTI_SUM);
        if (TIMED(&load, cuModuleLoadData(&module, room)))
            continue;
        TIMED(&first, cuModuleGetFunction(&f, module, name));
        cu->cuModuleUnload(module);
        TIMED(&again, cuModuleLoadData(&module, room));
        busy(20);
        cu->cuModuleUnload(module);
        TIMED(&full, cuModuleLoadData(&module, room));
        cu->cuStreamSynchronize(stream);
    }
    say(&load, "cuModuleLoadData of one kernel, compiled%s",
        getenv("CUDA_CACHE_DISABLE") ? "" : " or from the cache of compiled kernels");
    say(&first, "cuModuleGetFunction");
    say(&again, "cuModuleLoadData of the same text again");
    say(&full, "the same, a kernel of 20 ms in the context");
    for (int i = 0; i < 200 && spin.function; i++) {
        uint64_t start = stamp_now();
        spin_start(&spin, 0.0001, stream);
        series_add(&next, ns_since(start));
        cu->cuStreamSynchronize(stream);
    }
    say(&next, "cuLaunchKernel");
}

static void kernels_cold(void)
{
    setenv("CUDA_CACHE_DISABLE", "1", 1);
    kernels();
}

/* ---- a thread that asks whether something has ended ------------------------------------------ */

struct asker { pthread_t thread; shared32 stop; CUevent event; int pause_us; uint64_t asked; };

static void *asks(void *arg)
{
    struct asker *a = arg;
    while (!load_acquire32(&a->stop)) {
        cu->cuCtxPushCurrent_v2(context);
        cu->cuEventQuery(a->event);
        cu->cuCtxPopCurrent_v2(NULL);
        a->asked++;
        if (a->pause_us)
            usleep((useconds_t)a->pause_us);
    }
    return NULL;
}

static void polled(void)
{
    static const int pauses[] = { -1, 0, 50 };
    struct series s = { NULL, 0, 0 };
    CUstream other;
    if (!begin() || !spin.function || cu->cuStreamCreate(&other, CU_STREAM_NON_BLOCKING))
        return;
    for (int k = 0; k < 3; k++) {
        struct asker a = { .pause_us = pauses[k] };
        cu->cuEventCreate(&a.event, CU_EVENT_DISABLE_TIMING);
        busy(200);
        cu->cuEventRecord(a.event, stream);
        if (pauses[k] >= 0 && pthread_create(&a.thread, NULL, asks, &a))
            return;
        for (int i = 0; i < (slow ? 20 : 2000); i++) {
            uint64_t start = stamp_now();
            spin_start(&beside, 0.0001, other);
            series_add(&s, ns_since(start));
            if (i % 100 == 99)
                cu->cuStreamSynchronize(other);
        }
        store_release32(&a.stop, 1);
        if (pauses[k] >= 0)
            pthread_join(a.thread, NULL);
        double worst = series_quantile(&s, 0.99);
        say(&s, "cuLaunchKernel%s",
            pauses[k] < 0  ? ", alone"
            : pauses[k] > 0 ? ", another thread asks every 50 us"
                            : ", another thread asks all the time");
        line("   its 99th of 100", worst, worst, worst, 1);
        cu->cuCtxSynchronize();
    }
}

/* ---- all of them ----------------------------------------------------------------------------- */

static void opening(void)
{
    struct series s = { NULL, 0, 0 };
    uint64_t start = stamp_now();
    if (!begin())
        exit(SKIP);
    series_add(&s, ns_since(start));
    say(&s, "driver opened, context made, first kernel run");
}

int main(int argc, char **argv)
{
    static void (*const groups[])(void) = {
        opening, imports, small, memory, mapping, registering, registering_at_once, kernels_cold,
        kernels, polled, copies_alone, copies_beside
    };
    stamp_calibrate();
    file = argc > 1 ? fopen(argv[1], "w") : NULL;
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) {
        int status = 0;
        fflush(NULL);
        pid_t pid = fork();
        if (pid == 0) {
            groups[i]();
            fflush(NULL);
            _exit(0);
        }
        if (pid < 0 || waitpid(pid, &status, 0) != pid)
            return 1;
        if (WIFEXITED(status) && WEXITSTATUS(status) == SKIP)
            return SKIP;
        if (status)
            printf("group %zu ended with status %#x\n", i, (unsigned)status);
    }
    return 0;
}
