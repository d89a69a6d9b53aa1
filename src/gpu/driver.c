/* driver_open opens the library by name at its first call. driver_pointer only asks the loader
 * whether somebody else has loaded it. The loader counts what it has ever loaded. While that number
 * is the same, CUDA is still not there. It looks for the name in its list, and opens nothing: a
 * constructor of a library that is being loaded may wait for this thread. The number costs 20 to 60
 * ns, and nothing behind a mark in the list (gpu/loads).
 *
 * The state is the process's, as the driver is. One mutex guards it. A handler in each forked child
 * makes the mutex new, since a thread of the parent may have held it. The handler notes whether
 * CUDA had begun; then the child cannot use it. The loader has a lock of its own. A fork leaves it
 * held for ever in the child if another thread had it. So a second mutex is around our calls of the
 * loader, and fork takes it. */
#include "gpu/driver.h"

#include "base/atomic.h"
#include "gpu/loads.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LIBRARY "libcuda.so.1"

enum { WORDS_ROOM = 400 };

static struct {
    pthread_mutex_t lock;
    pthread_mutex_t loader;              /* around our calls of the loader, and around forks */
    shared32 begun;           /* the process in which CUDA has begun, as far as we know; 0: none */
    shared32 forked;          /* 1: that process is an ancestor of this one */
    shared32 loaded;          /* 1: `library` and the table are set, for good */
    shared64 counted;         /* the loader's number, plus 1, when CUDA was not loaded */
    void *opened;
    const char *missing;                             /* the first symbol missing in the library */
    struct driver driver;
    bool asked;                                      /* driver_open has its answer: */
    int error;
    char words[WORDS_ROOM];
} the = { .lock = PTHREAD_MUTEX_INITIALIZER,
          .loader = PTHREAD_MUTEX_INITIALIZER };

/* True: this thread holds `loader`. A library that is being opened may fork. */
static _Thread_local bool in_loader;

#if defined(__GLIBC__) && __GLIBC__ == 2 && __GLIBC_MINOR__ >= 32
#include <sys/single_threaded.h>
#define SINGLE_THREADED __libc_single_threaded
#else
#define SINGLE_THREADED 0
#endif

/* ---- the table ------------------------------------------------------------------------------- */

static void *look_up(void *library, const char *symbol)
{
    return dlsym(library, symbol);
}

/* A function pointer cannot be converted from void *, but its bytes are the same. */
static void bind_one(void *field, size_t size, void *found)
{
    memcpy(field, &found, size);
}

const char *driver_bind(struct cuda_api *call, void *(*look)(void *library, const char *symbol),
                        void *library)
{
    const char *missing = NULL;
    void *found;
#define BIND_(symbol, parameters) \
    found = look(library, #symbol); \
    bind_one(&call->symbol, sizeof call->symbol, found); \
    if (!found && !missing) \
        missing = #symbol;
    CUDA_SYMBOLS(BIND_)
#undef BIND_
#define BIND_(symbol, parameters) \
    found = look(library, #symbol); \
    bind_one(&call->symbol, sizeof call->symbol, found);
    CUDA_LATER_SYMBOLS(BIND_)
#undef BIND_
    return missing;
}

/* In a forked child, which has one thread: nobody else reads what is written here. */
static void in_child(void)
{
    pthread_mutex_init(&the.lock, NULL);
    if (!in_loader)
        pthread_mutex_unlock(&the.loader);
    /* relaxed: the child's only thread; fork ordered what the parent's did */
    if (load_relaxed32(&the.begun))
        store_relaxed32(&the.forked, 1);    /* relaxed: likewise */
    if (!load_relaxed32(&the.loaded))       /* relaxed: likewise */
        the.opened = NULL;                  /* a thread of the parent was about to fill the table */
}

static void before_fork(void)
{
    if (!in_loader)
        pthread_mutex_lock(&the.loader);
}

static void in_parent(void)
{
    if (!in_loader)
        pthread_mutex_unlock(&the.loader);
}

static void watch_forks(void)
{
    pthread_atfork(before_fork, in_parent, in_child);
}

static void forks_watched(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
}

/* While the process has one thread, no other can be in the loader at a fork, so the lock is not
 * needed. It costs a tenth of a small operation. True: it has locked. */
static bool loader_lock(void)
{
    if (SINGLE_THREADED)
        return false;
    forks_watched();
    pthread_mutex_lock(&the.loader);
    in_loader = true;
    return true;
}

static void loader_unlock(bool locked)
{
    if (!locked)
        return;
    in_loader = false;
    pthread_mutex_unlock(&the.loader);
}

static void lock(void)
{
    forks_watched();
    pthread_mutex_lock(&the.lock);
}

/* Under the lock. The reference `library` is never given back, so what was found in it stays. */
static void keep(void *library)
{
    if (the.opened)
        return;
    the.opened = library;
    bool locked = loader_lock();
    the.missing = driver_bind(&the.driver.call, look_up, library);
    loader_unlock(locked);
    /* relaxed: it only says that the lock is worth taking; the lock orders the table */
    store_relaxed32(&the.loaded, 1);
}

/* ---- which process, which libraries ---------------------------------------------------------- */

static bool is_forked(void)
{
    return load_relaxed32(&the.forked);   /* relaxed: set before this process had a second thread */
}

/* From here on a forked child must not use CUDA. */
static void note_begun(void)
{
    if (!load_relaxed32(&the.begun))        /* relaxed: a note for children, and fork orders it; */
        /* relaxed: all writers write the same */
        store_relaxed32(&the.begun, (uint32_t)getpid());
}

bool driver_loaded(void)
{
    /* relaxed: a one is for good; the lock orders what it stands for */
    if (load_relaxed32(&the.loaded))
        return true;
    if (loads_none())
        return false;
    void *library = NULL;
    bool locked = loader_lock();
    /* relaxed: a number to compare with; the lock orders what it counts */
    uint64_t counted = load_relaxed64(&the.counted);
    struct loads has = loads_ask(LIBRARY, counted);
    if (has.there)                       /* waits, once, for what others are loading just now */
        library = dlopen(LIBRARY, RTLD_LAZY | RTLD_NOLOAD);
    if (!library) {
        store_relaxed64(&the.counted, has.number);     /* relaxed: as above */
        if (SINGLE_THREADED)
            loads_missed(has.number, has.number == counted);
    }
    loader_unlock(locked);
    if (!library)
        return false;
    lock();
    keep(library);
    pthread_mutex_unlock(&the.lock);
    return true;
}

void driver_ahead(void) { loads_mark_ahead(LIBRARY); }

/* ---- errors ---------------------------------------------------------------------------------- */

int driver_error(CUresult error)
{
    static const struct { CUresult error; int number; } rows[] = {
        { CUDA_SUCCESS, 0 },
        { CUDA_ERROR_INVALID_VALUE, EINVAL },
        { CUDA_ERROR_OUT_OF_MEMORY, ENOMEM },
        { CUDA_ERROR_NOT_INITIALIZED, ENODEV },
        { CUDA_ERROR_DEINITIALIZED, ENODEV },
        { CUDA_ERROR_STUB_LIBRARY, ENODEV },
        { CUDA_ERROR_DEVICE_UNAVAILABLE, EBUSY },
        { CUDA_ERROR_NO_DEVICE, ENODEV },
        { CUDA_ERROR_INVALID_DEVICE, ENODEV },
        { CUDA_ERROR_INVALID_IMAGE, ENOEXEC },
        { CUDA_ERROR_INVALID_CONTEXT, EINVAL },
        { CUDA_ERROR_ALREADY_MAPPED, EEXIST },
        { CUDA_ERROR_NO_BINARY_FOR_GPU, ENOEXEC },
        { CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, ENOTSUP },
        { CUDA_ERROR_INVALID_PTX, ENOEXEC },
        { CUDA_ERROR_JIT_COMPILER_NOT_FOUND, ENOEXEC },
        { CUDA_ERROR_UNSUPPORTED_PTX_VERSION, ENOEXEC },
        { CUDA_ERROR_JIT_COMPILATION_DISABLED, ENOEXEC },
        { CUDA_ERROR_INVALID_HANDLE, EINVAL },
        { CUDA_ERROR_NOT_FOUND, ENOENT },
        { CUDA_ERROR_NOT_READY, EAGAIN },
        { CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, EEXIST },
        { CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, EEXIST },
        { CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, ENOENT },
        { CUDA_ERROR_NOT_PERMITTED, EPERM },
        { CUDA_ERROR_NOT_SUPPORTED, ENOTSUP },
        { CUDA_ERROR_SYSTEM_NOT_READY, EAGAIN },
        { CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, ENODEV },
        { CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, ENODEV },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].error == error)
            return -rows[i].number;
    return -EIO;                            /* the device's own failures among them: 700 to 719 */
}

int driver_failed(const struct cuda_api *call, const char *function, CUresult error,
                  struct text *why)
{
    const char *name = NULL, *words = NULL;
    if (!why)
        return driver_error(error);
    if (call->cuGetErrorName && call->cuGetErrorName(error, &name) != 0)
        name = NULL;
    if (call->cuGetErrorString && call->cuGetErrorString(error, &words) != 0)
        words = NULL;
    text_add(why, "%s: %s (%d)%s%s", function, name ? name : "CUDA's error", error,
             words ? ": " : "", words ? words : "");
    return driver_error(error);
}

/* ---- the beginning --------------------------------------------------------------------------- */

static int no_library(struct text *why)
{
    const char *words = dlerror();
    if (words && strstr(words, "No such file"))
        text_add(why,
                 "no CUDA driver: there is no " LIBRARY
                 " on this machine, or none that the loader finds");
    else
        text_add(why, "no CUDA driver: " LIBRARY " cannot be loaded: %s",
                 words ? words : "the loader does not say why");
    return -ENODEV;
}

static int begin(struct text *why)
{
    const struct cuda_api *call = &the.driver.call;
    note_begun();
    CUresult error = call->cuInit(0);
    if (error == CUDA_ERROR_STUB_LIBRARY) {
        text_add(why,
                 "no GPU: stub library. " LIBRARY
                 " is the one of the CUDA toolkit that programs are linked with, not a driver");
        return -ENODEV;
    }
    if (error == CUDA_ERROR_NO_DEVICE) {
        text_add(why,
                 "no GPU: there is a CUDA driver, and it sees no device (CUDA_VISIBLE_DEVICES?). ");
        return driver_failed(call, "cuInit", error, why);
    }
    if (error)
        return driver_failed(call, "cuInit", error, why);
    error = call->cuDriverGetVersion(&the.driver.version);
    if (error)
        return driver_failed(call, "cuDriverGetVersion", error, why);
    error = call->cuDeviceGetCount(&the.driver.devices);
    if (error)
        return driver_failed(call, "cuDeviceGetCount", error, why);
    if (the.driver.devices < 1) {
        text_add(why,
                 "no GPU: there is a CUDA driver, and it sees no device (CUDA_VISIBLE_DEVICES?)");
        return -ENODEV;
    }
    return 0;
}

static int find(struct text *why)
{
    if (!the.opened) {
        bool locked = loader_lock();
        void *library = dlopen(LIBRARY, RTLD_LAZY | RTLD_LOCAL);
        loader_unlock(locked);
        if (!library)
            return no_library(why);
        keep(library);
    }
    if (the.missing) {
        text_add(why,
                 "the CUDA driver is too old: it has no %s; R470 (CUDA 11.4) or a later one is "
                 "needed",
                 the.missing);
        return -ENOSYS;
    }
    return begin(why);
}

static int refuse_fork(struct text *why)
{
    if (why)
        text_add(why,
                 "CUDA does not survive fork, and it had begun in process %u before this one "
                 "forked off; start the ranks by exec "
                 "or spawn, or fork before the first use of a device",
                 /* relaxed: as in is_forked */
                 load_relaxed32(&the.begun));
    return -ENOTSUP;
}

bool driver_begun(void)
{
    /* relaxed: a hint, set by the first pointer of a device that was seen */
    return load_relaxed32(&the.begun) != 0;
}

bool driver_forked(void) { return is_forked(); }

int driver_open(const struct driver **driver, struct text *why)
{
    lock();
    if (!the.asked && !is_forked()) {
        struct text words = TEXT_IN(the.words);
        text_clear(&words);
        the.error = find(&words);
        the.asked = true;
    }
    pthread_mutex_unlock(&the.lock);
    if (is_forked() && (!the.asked || !the.error))
        return refuse_fork(why);
    if (the.error && why)                            /* nobody writes these any more */
        text_add(why, "%s", the.words);
    if (!the.error)
        *driver = &the.driver;
    return the.error;
}

/* ---- questions ------------------------------------------------------------------------------- */

/* Each value has 64 bits and is zero before, because drivers and documents differ in which of them
 * are 32 bits wide. */
enum {
    MEMORY_TYPE, IS_MANAGED, DEVICE_ORDINAL, CONTEXT, DEVICE_POINTER, RANGE_START, RANGE_SIZE,
    BUFFER_ID, LEGACY_IPC, HANDLE_TYPES, ATTRIBUTES
};

static const int attributes[ATTRIBUTES] = {
    [MEMORY_TYPE] = CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
    [IS_MANAGED] = CU_POINTER_ATTRIBUTE_IS_MANAGED,
    [DEVICE_ORDINAL] = CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
    [CONTEXT] = CU_POINTER_ATTRIBUTE_CONTEXT,
    [DEVICE_POINTER] = CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
    [RANGE_START] = CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
    [RANGE_SIZE] = CU_POINTER_ATTRIBUTE_RANGE_SIZE,
    [BUFFER_ID] = CU_POINTER_ATTRIBUTE_BUFFER_ID,
    [LEGACY_IPC] = CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE,
    [HANDLE_TYPES] = CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES,
};

static enum driver_memory kind_of(const uint64_t *value)
{
    if (value[IS_MANAGED] || value[MEMORY_TYPE] == CU_MEMORYTYPE_UNIFIED)
        return DRIVER_MANAGED;
    if (value[MEMORY_TYPE] == CU_MEMORYTYPE_DEVICE)
        return DRIVER_DEVICE;
    return value[MEMORY_TYPE] == CU_MEMORYTYPE_HOST ? DRIVER_PINNED : DRIVER_HOST;
}

static void take(struct driver_pointer *pointer, const uint64_t *value)
{
    pointer->memory = kind_of(value);
    if (pointer->memory == DRIVER_HOST)
        return;
    pointer->device = (int)(uint32_t)value[DEVICE_ORDINAL];
    pointer->context = (CUcontext)(uintptr_t)value[CONTEXT];
    pointer->address = value[DEVICE_POINTER];
    pointer->base = value[RANGE_START];
    pointer->bytes = value[RANGE_SIZE];
    pointer->buffer = value[BUFFER_ID];
    pointer->ipc = value[LEGACY_IPC] != 0;
    pointer->descriptor = (value[HANDLE_TYPES] & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != 0;
}

/* True: after this error no pointer can be device memory. The pointer is none of CUDA's, or CUDA
 * has not begun, has ended, is a stub. */
static bool means_host(CUresult error)
{
    return error == CUDA_ERROR_INVALID_VALUE || error == CUDA_ERROR_NOT_INITIALIZED
        || error == CUDA_ERROR_DEINITIALIZED || error == CUDA_ERROR_STUB_LIBRARY;
}

int driver_pointer(const void *at, struct driver_pointer *pointer, struct text *why)
{
    uint64_t value[ATTRIBUTES] = { 0 };
    void *values[ATTRIBUTES];
    int which[ATTRIBUTES];
    *pointer = (struct driver_pointer){ .memory = DRIVER_HOST, .device = -1 };
    if (is_forked() || !driver_loaded())
        return 0;
    lock();
    const struct cuda_api *call = &the.driver.call;
    pthread_mutex_unlock(&the.lock);
    if (!call->cuPointerGetAttributes) {
        if (why)
            text_add(why,
                     "the CUDA driver has no cuPointerGetAttributes: it cannot be asked whose "
                     "memory %p is",
                     at);
        return -ENOSYS;
    }
    for (int i = 0; i < ATTRIBUTES; i++)
        values[i] = &value[i];
    memcpy(which, attributes, sizeof which);
    CUresult error = call->cuPointerGetAttributes(ATTRIBUTES, which, values,
                                                  (CUdeviceptr)(uintptr_t)at);
    if (error && !means_host(error))
        return driver_failed(call, "cuPointerGetAttributes", error, why);
    if (!error) {
        note_begun();                                /* somebody has begun it */
        take(pointer, value);
    }
    return 0;
}

static CUresult ask_device(const struct cuda_api *call, int ordinal, struct driver_device *device,
                           const char **function)
{
    CUdevice d;
    *function = "cuDeviceGet";
    CUresult error = call->cuDeviceGet(&d, ordinal);
    if (error)
        return error;
    *function = "cuDeviceGetName";
    error = call->cuDeviceGetName(device->name, (int)sizeof device->name, d);
    if (error)
        return error;
    *function = "cuDeviceGetUuid";
    error = call->cuDeviceGetUuid_v2(&device->uuid, d);
    if (error)
        return error;
    *function = "cuDeviceGetPCIBusId";
    error = call->cuDeviceGetPCIBusId(device->bus, (int)sizeof device->bus, d);
    if (error)
        return error;
    *function = "cuDeviceGetAttribute";
    error = call->cuDeviceGetAttribute(&device->major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                                       d);
    return error ? error
                 : call->cuDeviceGetAttribute(&device->minor,
                                              CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, d);
}

int driver_device(const struct driver *driver, int ordinal, struct driver_device *device,
                  struct text *why)
{
    const char *function;
    *device = (struct driver_device){ .major = 0 };
    CUresult error = ask_device(&driver->call, ordinal, device, &function);
    if (!error)
        return 0;
    if (why)
        text_add(why, "device %d: ", ordinal);
    return driver_failed(&driver->call, function, error, why);
}
