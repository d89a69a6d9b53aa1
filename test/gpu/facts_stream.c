/* Contexts, threads, streams that are captured: what of the library's calls a driver refuses, and
 * what of the program's it spoils. */
#include "facts.h"

#include "device_fixture.h"
#include "gpu/kernel.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { BYTES_ = 1 << 20, PAGE_ = 4096, GLOBAL = 0, THREAD_LOCAL = 1, RELAXED = 2 };

/* ---- memory of another context than the primary one ------------------------------------------ */

static void touch(const char *what, CUdeviceptr at, CUdeviceptr to, CUstream stream)
{
    unsigned char byte = 0;
    CUresult said = cu.cuMemcpyDtoHAsync_v2(&byte, at, 1, stream);
    CUresult ended = cu.cuStreamSynchronize(stream);
    fact("%s: copied to the host %s, %s, byte %#x", what, facts_name(said), facts_name(ended),
         byte);
    said = cu.cuMemcpyDtoDAsync_v2(to, at, BYTES_, stream);
    ended = cu.cuStreamSynchronize(stream);
    fact("%s: copied inside the device %s, %s", what, facts_name(said), facts_name(ended));
    CUfunction f = fixture_fold(TUTTI_F32, TUTTI_SUM);
    struct kernel_fold fold = {
        .out = to, .count = 1024, .inputs = 1, .divisor = 1, .in = { at }
    };
    void *parameters[] = { &fold };
    if (!f) {
        fact("our kernel could not be loaded");
        return;
    }
    said = cu.cuLaunchKernel(f, 1, 1, 1, 128, 1, 1, 0, stream, parameters, NULL);
    ended = cu.cuStreamSynchronize(stream);
    fact("%s: read by a kernel %s, %s", what, facts_name(said), facts_name(ended));
}

int facts_foreign_context(void)
{
    typedef CUresult create_context(CUcontext *, unsigned, CUdevice);
    create_context *create;
    CUcontext context = NULL, told = NULL;
    CUdeviceptr at = 0, to = 0;
    CUstream stream;
    CUipcMemHandle handle;
    if (!facts_begin())
        return 0;
    void *found = facts_symbol("cuCtxCreate_v2");
    if (!found)
        return 0;
    memcpy(&create, &found, sizeof found);
    fact("cuCtxCreate: %s", facts_name(create(&context, 0, 0)));
    OK(cu.cuMemAlloc_v2(&at, BYTES_));
    OK(cu.cuMemsetD8Async(at, 0x71, BYTES_, NULL));
    OK(cu.cuCtxSynchronize());
    OK(cu.cuCtxSetCurrent(facts_context));
    cu.cuPointerGetAttribute(&told, CU_POINTER_ATTRIBUTE_CONTEXT, at);
    fact("CONTEXT of its memory is %s",
         told == context         ? "its own"
         : told == facts_context ? "the primary one"
                                 : "none of both");
    fact("cuIpcGetMemHandle of it with the primary context current: %s",
         facts_name(cu.cuIpcGetMemHandle(&handle, at)));
    OK(cu.cuMemAlloc_v2(&to, BYTES_));
    OK(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    touch("memory of another context, from the primary one", at, to, stream);
    return 0;
}

/* ---- a thread without a context -------------------------------------------------------------- */

struct bare { CUdeviceptr at; CUstream stream; CUevent event; unsigned char *page; };

static void *bare_thread(void *arg)
{
    const struct bare *b = arg;
    int kinds[] = { CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_BUFFER_ID };
    unsigned type = 0;
    unsigned long long id = 0;
    void *values[] = { &type, &id };
    CUdeviceptr base = 0;
    size_t bytes = 0;
    CUipcMemHandle handle;
    CUresult said = cu.cuPointerGetAttributes(2, kinds, values, b->at);
    fact("cuPointerGetAttributes: %s, type %u, id %llu", facts_name(said), type, id);
    fact("cuMemGetAddressRange: %s",
         facts_name(cu.cuMemGetAddressRange_v2(&base, &bytes, b->at)));
    fact("cuIpcGetMemHandle: %s", facts_name(cu.cuIpcGetMemHandle(&handle, b->at)));
    fact("cuStreamQuery: %s", facts_name(cu.cuStreamQuery(b->stream)));
    fact("cuEventQuery: %s", facts_name(cu.cuEventQuery(b->event)));
    fact("cuEventRecord: %s", facts_name(cu.cuEventRecord(b->event, b->stream)));
    fact("cuMemcpyDtoHAsync: %s",
         facts_name(cu.cuMemcpyDtoHAsync_v2(b->page, b->at, 4, b->stream)));
    fact("cuStreamSynchronize: %s", facts_name(cu.cuStreamSynchronize(b->stream)));
    fact("cuMemHostRegister: %s",
         facts_name(cu.cuMemHostRegister_v2(b->page, PAGE_, CU_MEMHOSTREGISTER_PORTABLE)));
    fact("cuMemAlloc: %s", facts_name(cu.cuMemAlloc_v2(&base, PAGE_)));
    return NULL;
}

int facts_thread(void)
{
    struct bare b = { 0 };
    pthread_t thread;
    if (!facts_begin())
        return 0;
    OK(cu.cuMemAlloc_v2(&b.at, BYTES_));
    OK(cu.cuStreamCreate(&b.stream, CU_STREAM_NON_BLOCKING));
    OK(cu.cuEventCreate(&b.event, CU_EVENT_DISABLE_TIMING));
    b.page = mmap(NULL, PAGE_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    YES(b.page != MAP_FAILED && pthread_create(&thread, NULL, bare_thread, &b) == 0);
    pthread_join(thread, NULL);
    return 0;
}

/* ---- a capture in another thread ------------------------------------------------------------- */

typedef CUresult begin_capture(CUstream stream, int mode);
typedef CUresult end_capture(CUstream stream, void **graph);
typedef CUresult exchange_mode(int *mode);

static begin_capture *begin_it;
static end_capture *end_it;
static exchange_mode *exchange;

/* What the library may call meanwhile. */
enum called {
    EVENT_QUERY, STREAM_QUERY, EVENT_RECORD, STREAM_WAIT_EVENT, POINTER, ADDRESS_RANGE, COPY,
    COPY_INSIDE, LAUNCH, EVENT_CREATE, STREAM_CREATE, STREAM_DESTROY, HOST_REGISTER,
    HOST_UNREGISTER, MEM_ALLOC,
    MEM_FREE, IPC_HANDLE, MODULE_LOAD, MEM_CREATE, EVENT_NULL_STREAM, IS_CAPTURING, SYNCHRONIZE,
    CALLED
};
static const char *const called_names[CALLED] = {
    "cuEventQuery", "cuStreamQuery", "cuEventRecord", "cuStreamWaitEvent", "cuPointerGetAttribute",
    "cuMemGetAddressRange", "cuMemcpyDtoHAsync", "cuMemcpyDtoDAsync", "cuLaunchKernel",
    "cuEventCreate", "cuStreamCreate", "cuStreamDestroy", "cuMemHostRegister",
    "cuMemHostUnregister", "cuMemAlloc",
    "cuMemFree", "cuIpcGetMemHandle", "cuModuleLoadData", "cuMemCreate and cuMemRelease",
    "cuEventRecord in the default stream", "cuStreamIsCapturing of the default stream",
    "cuCtxSynchronize"
};

struct beside {
    enum called called;
    bool relaxed;
    CUresult result;
    CUstream stream, spare;
    CUevent event;
    CUdeviceptr at, to, spare_at;
    CUfunction function;
    unsigned char *host;
};

static CUresult call_it(struct beside *b)
{
    struct kernel_fold fold = {
        .out = b->to, .count = 64, .inputs = 1, .divisor = 1, .in = { b->at }
    };
    void *parameters[] = { &fold };
    CUdeviceptr got = 0;
    CUmemAllocationProp prop = facts_prop();
    CUmemGenericAllocationHandle handle;
    CUipcMemHandle ipc;
    CUevent event;
    size_t bytes;
    int type = 0;
    CUresult error;
    switch (b->called) {
    case EVENT_QUERY: return cu.cuEventQuery(b->event);
    case STREAM_QUERY: return cu.cuStreamQuery(b->stream);
    case EVENT_RECORD: return cu.cuEventRecord(b->event, b->stream);
    case STREAM_WAIT_EVENT: return cu.cuStreamWaitEvent(b->stream, b->event, 0);
    case POINTER: return cu.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, b->at);
    case ADDRESS_RANGE: return cu.cuMemGetAddressRange_v2(&got, &bytes, b->at);
    case COPY: return cu.cuMemcpyDtoHAsync_v2(b->host, b->at, 64, b->stream);
    case COPY_INSIDE: return cu.cuMemcpyDtoDAsync_v2(b->to, b->at, 64, b->stream);
    case LAUNCH:
        return b->function
            ? cu.cuLaunchKernel(b->function, 1, 1, 1, 128, 1, 1, 0, b->stream, parameters, NULL)
            : CUDA_ERROR_INVALID_IMAGE;
    case EVENT_CREATE: return cu.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
    case STREAM_CREATE: return cu.cuStreamCreate(&b->spare, CU_STREAM_NON_BLOCKING);
    case STREAM_DESTROY:
        error = b->spare ? cu.cuStreamDestroy_v2(b->spare) : 0;
        b->spare = NULL;
        return error;
    case HOST_REGISTER:
        return cu.cuMemHostRegister_v2(b->host + PAGE_, PAGE_, CU_MEMHOSTREGISTER_PORTABLE);
    case MEM_ALLOC: return cu.cuMemAlloc_v2(&b->spare_at, PAGE_);
    case MEM_FREE:
        error = b->spare_at ? cu.cuMemFree_v2(b->spare_at) : 0;
        b->spare_at = 0;
        return error;
    case HOST_UNREGISTER: return cu.cuMemHostUnregister(b->host + PAGE_);
    case IPC_HANDLE: return cu.cuIpcGetMemHandle(&ipc, b->at);
    case MODULE_LOAD: return fixture_fold(TUTTI_F32, TUTTI_MAX) ? 0 : CUDA_ERROR_UNKNOWN;
    case MEM_CREATE:
        error = cu.cuMemCreate(&handle, facts_grain, &prop, 0);
        return error ? error : cu.cuMemRelease(handle);
    case EVENT_NULL_STREAM: return cu.cuEventRecord(b->event, NULL);
    case IS_CAPTURING: return cu.cuStreamIsCapturing(NULL, &type);
    case SYNCHRONIZE: return cu.cuCtxSynchronize();
    case CALLED: break;
    }
    return CUDA_ERROR_UNKNOWN;
}

static void *beside_thread(void *arg)
{
    struct beside *b = arg;
    int mode = RELAXED;
    b->result = cu.cuCtxSetCurrent(facts_context);
    if (b->relaxed && exchange)
        exchange(&mode);
    if (!b->result)
        b->result = call_it(b);
    return NULL;
}

/* Both: what the call says in another thread, and what the capture's end says. */
static void beside(struct beside *b, CUstream captured, int mode, CUresult said[2])
{
    pthread_t thread;
    void *graph = NULL;
    said[0] = begin_it(captured, mode);
    if (said[0] || pthread_create(&thread, NULL, beside_thread, b))
        return;
    pthread_join(thread, NULL);
    said[0] = b->result;
    said[1] = end_it(captured, &graph);
}

static bool captures(void)
{
    void *begin = facts_symbol("cuStreamBeginCapture_v2");
    void *end = facts_symbol("cuStreamEndCapture");
    void *mode = facts_symbol("cuThreadExchangeStreamCaptureMode");
    if (!begin || !end)
        return false;
    memcpy(&begin_it, &begin, sizeof begin);
    memcpy(&end_it, &end, sizeof end);
    memcpy(&exchange, &mode, sizeof mode);
    return true;
}

static int beside_begin(struct beside *b, CUstream *captured, unsigned flags)
{
    OK(cu.cuStreamCreate(captured, flags));
    OK(cu.cuStreamCreate(&b->stream, CU_STREAM_NON_BLOCKING));
    OK(cu.cuEventCreate(&b->event, CU_EVENT_DISABLE_TIMING));
    OK(cu.cuEventRecord(b->event, b->stream));
    OK(cu.cuMemAlloc_v2(&b->at, BYTES_));
    OK(cu.cuMemAlloc_v2(&b->to, BYTES_));
    b->host = mmap(NULL, 2 * PAGE_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    YES(b->host != MAP_FAILED);
    OK(cu.cuMemHostRegister_v2(b->host, PAGE_, CU_MEMHOSTREGISTER_PORTABLE));
    b->function = fixture_fold(TUTTI_F32, TUTTI_SUM);
    OK(cu.cuCtxSynchronize());
    return 0;
}

/* What the next call gives back is there; what it takes is not. */
static void before(struct beside *b)
{
    if (b->called == STREAM_DESTROY && !b->spare)
        cu.cuStreamCreate(&b->spare, CU_STREAM_NON_BLOCKING);
    if (b->called == MEM_FREE && !b->spare_at)
        cu.cuMemAlloc_v2(&b->spare_at, PAGE_);
    if (b->called == HOST_REGISTER)
        cu.cuMemHostUnregister(b->host + PAGE_);
    if (b->called == HOST_UNREGISTER)
        cu.cuMemHostRegister_v2(b->host + PAGE_, PAGE_, CU_MEMHOSTREGISTER_PORTABLE);
}

int facts_capture(void)
{
    struct beside b = { 0 };
    CUstream captured;
    if (!facts_begin() || !captures() || beside_begin(&b, &captured, CU_STREAM_NON_BLOCKING))
        return 0;
    for (int i = 0; i < CALLED; i++) {
        CUresult all[3][2] = { { 0 } };
        b.called = (enum called)i;
        before(&b);
        beside(&b, captured, GLOBAL, all[0]);
        b.relaxed = true;
        before(&b);
        beside(&b, captured, GLOBAL, all[1]);
        b.relaxed = false;
        before(&b);
        beside(&b, captured, THREAD_LOCAL, all[2]);
        fact("%s: %s and the capture ends %s; relaxed %s, %s; of a capture that is thread-local "
             "%s, %s", called_names[i], facts_name(all[0][0]), facts_name(all[0][1]),
             facts_name(all[1][0]), facts_name(all[1][1]), facts_name(all[2][0]),
             facts_name(all[2][1]));
    }
    return 0;
}

/* ---- a stream that waits for a word of the host ---------------------------------------------- */

typedef CUresult wait_value(CUstream stream, CUdeviceptr at, uint32_t value, unsigned flags);
enum { GEQ = 0, HELD_MS = 300, FIRST_LAUNCH = CALLED };

struct held { struct beside beside; CUfunction fresh; uint32_t over; };

/* A kernel's first launch is when a driver that loads lazily loads it. */
static void *held_thread(void *arg)
{
    struct held *h = arg;
    struct beside *b = &h->beside;
    struct kernel_fold fold = {
        .out = b->to, .count = 64, .inputs = 1, .divisor = 1, .in = { b->at }
    };
    void *parameters[] = { &fold };
    b->result = cu.cuCtxSetCurrent(facts_context);
    if (!b->result && b->called < CALLED)
        b->result = call_it(b);
    else if (!b->result)
        b->result = cu.cuLaunchKernel(h->fresh, 1, 1, 1, 128, 1, 1, 0, b->stream, parameters, NULL);
    __atomic_store_n(&h->over, 1, __ATOMIC_RELEASE);
    return NULL;
}

struct word { wait_value *wait; CUstream stream; uint32_t *at, number; CUdeviceptr seen; };

static bool word_hold(struct word *word)
{
    CUresult error = word->wait(word->stream, word->seen, ++word->number, GEQ);
    if (error)
        fact("cuStreamWaitValue32: %s", facts_name(error));
    return !error;
}

static void word_go(struct word *word)
{
    __atomic_store_n(word->at, word->number, __ATOMIC_RELEASE);
}

/* Begins the call in a thread. True: it is over after a while. */
static bool goes_on(struct held *h, pthread_t *thread)
{
    __atomic_store_n(&h->over, 0, __ATOMIC_RELAXED);
    double from = facts_ms();
    if (pthread_create(thread, NULL, held_thread, h))
        abort();
    while (!__atomic_load_n(&h->over, __ATOMIC_ACQUIRE) && facts_ms() - from < HELD_MS) { }
    return __atomic_load_n(&h->over, __ATOMIC_ACQUIRE);
}

static void held(struct held *h, struct word *word)
{
    pthread_t thread;
    if (!word_hold(word))
        return;
    bool on = goes_on(h, &thread);
    word_go(word);
    pthread_join(thread, NULL);
    fact("%s: %s, %s", h->beside.called < CALLED ? called_names[h->beside.called]
                                                  : "a kernel's first launch",
         facts_name(h->beside.result), on ? "goes on" : "waits for that stream");
    cu.cuCtxSynchronize();
}

/* A thread of the program's frees memory; what of the library's goes on meanwhile? */
static void held_beside_free(struct held *h, struct word *word)
{
    struct held frees = *h;
    pthread_t free_thread, thread;
    frees.beside.called = MEM_FREE;
    before(&frees.beside);
    if (!word_hold(word))
        return;
    bool freed = goes_on(&frees, &free_thread), on = goes_on(h, &thread);
    word_go(word);
    pthread_join(free_thread, NULL);
    pthread_join(thread, NULL);
    fact("%s while another thread's cuMemFree %s: %s, %s", called_names[h->beside.called],
         freed ? "has ended" : "waits so", facts_name(h->beside.result),
         on ? "goes on" : "waits, too");
    cu.cuCtxSynchronize();
}

int facts_held(void)
{
    static const enum called ours[] = { EVENT_QUERY, COPY, COPY_INSIDE, LAUNCH };
    struct held h = { .beside = { .called = EVENT_QUERY } };
    struct word word = { .number = 0 };
    void *found = facts_begin() ? facts_symbol("cuStreamWaitValue32_v2") : NULL;
    if (!found || beside_begin(&h.beside, &word.stream, CU_STREAM_NON_BLOCKING))
        return 0;
    memcpy(&word.wait, &found, sizeof found);
    h.fresh = fixture_fold(TUTTI_F32, TUTTI_MIN);
    word.at = mmap(NULL, PAGE_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    YES(word.at != MAP_FAILED);
    OK(cu.cuMemHostRegister_v2(word.at, PAGE_, CU_MEMHOSTREGISTER_DEVICEMAP));
    OK(cu.cuMemHostGetDevicePointer_v2(&word.seen, word.at, 0));
    for (int i = 0; i <= FIRST_LAUNCH; i++) {
        if (i == FIRST_LAUNCH && !h.fresh)
            break;
        h.beside.called = (enum called)i;
        before(&h.beside);
        held(&h, &word);
    }
    for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++) {
        h.beside.called = ours[i];
        held_beside_free(&h, &word);
    }
    return 0;
}

/* The captured stream is one that waits for the default stream. */
int facts_capture_null(void)
{
    static const enum called some[] = {
        EVENT_QUERY, EVENT_RECORD, EVENT_NULL_STREAM, IS_CAPTURING
    };
    struct beside b = { .relaxed = true };
    CUstream captured;
    if (!facts_begin() || !captures() || beside_begin(&b, &captured, 0))
        return 0;
    for (size_t i = 0; i < sizeof some / sizeof some[0]; i++) {
        CUresult said[2] = { 0 };
        b.called = some[i];
        beside(&b, captured, GLOBAL, said);
        fact("a blocking stream is captured, %s in a relaxed thread: %s, and the capture ends %s",
             called_names[some[i]], facts_name(said[0]), facts_name(said[1]));
    }
    return 0;
}
