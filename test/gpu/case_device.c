/* The tests' driver shows the CPU the bytes of a device; on a real one they are copied, by a stream
 * made for the copy, since it is to wait for nothing and to order nothing. A real stream is held
 * back by a wait for a word of the host, which is of the driver and not of our table. */
#include "case_device.h"

#include "base/atomic.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <tutti_cuda.h>

enum { HOLDS = 8, HOLD_BYTES = 4096, WAIT_GEQ = 0 };

typedef CUresult wait_value(CUstream stream, CUdeviceptr at, uint32_t value, unsigned flags);

/* A stream keeps its word for as long as the process lives. */
static struct {
    pthread_mutex_t lock;
    shared32 *words;
    CUdeviceptr seen;
    wait_value *wait;
    int used;
    CUstream stream[HOLDS];
    uint32_t times[HOLDS];
} holds = { .lock = PTHREAD_MUTEX_INITIALIZER };

bool case_real(void)
{
    const char *which = getenv("TUTTI_TEST_CUDA");
    return which && !strcmp(which, "real");
}

bool case_needs_fake(const char *power)
{
    if (case_real())
        printf("skipped: needs a driver that %s\n", power);
    return case_real();
}

static void must_do(CUresult error, const char *what)
{
    if (!error)
        return;
    fprintf(stderr, "%s: CUDA error %d\n", what, error);
    abort();
}

int case_devices(void)
{
    const char *wanted = getenv("FAKE_CUDA_DEVICES");
    int many = wanted ? atoi(wanted) : 1, there = many;
    if (case_real() && !cu.cuDeviceGetCount)
        must_do(case_cuda() ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE, "the driver");
    if (case_real())
        must_do(cu.cuDeviceGetCount(&there), "cuDeviceGetCount");
    return there < many ? there : many;
}

static void copy(CUdeviceptr device, void *to, const void *from, size_t bytes)
{
    CUstream stream;
    must_do(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "a stream for the test's copy");
    if (to)
        must_do(cu.cuMemcpyDtoHAsync_v2(to, device, bytes, stream), "the test's copy");
    else
        must_do(cu.cuMemcpyHtoDAsync_v2(device, from, bytes, stream), "the test's copy");
    must_do(cu.cuStreamSynchronize(stream), "the end of the test's copy");
    must_do(cu.cuStreamDestroy_v2(stream), "the stream of the test's copy");
}

void case_put(CUdeviceptr to, const void *from, size_t bytes)
{
    if (!bytes)
        return;
    if (case_real())
        copy(to, NULL, from, bytes);
    else
        memmove(fake.fakePeek(to), from, bytes);
}

void case_get(void *to, CUdeviceptr from, size_t bytes)
{
    if (!bytes)
        return;
    if (case_real())
        copy(from, to, NULL, bytes);
    else
        memcpy(to, fake.fakePeek(from), bytes);
}

void case_fill(CUdeviceptr to, unsigned char value, size_t bytes)
{
    void *mem = malloc(bytes + 1);
    must_do(mem ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY, "memory of the test");
    memset(mem, value, bytes);
    case_put(to, mem, bytes);
    free(mem);
}

bool case_same(CUdeviceptr at, const void *with, size_t bytes)
{
    void *mem = malloc(bytes + 1);
    must_do(mem ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY, "memory of the test");
    case_get(mem, at, bytes);
    bool same = memcmp(mem, with, bytes) == 0;
    free(mem);
    return same;
}

/* ---- streams that are held back -------------------------------------------------------------- */

static void prepare(void *found)
{
    must_do(found ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND, "cuStreamWaitValue32_v2");
    memcpy(&holds.wait, &found, sizeof found);
    holds.words = mmap(NULL, HOLD_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                       0);
    must_do(holds.words != MAP_FAILED ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY, "mmap");
    must_do(cu.cuMemHostRegister_v2(holds.words, HOLD_BYTES,
                                    CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP),
            "registering what held streams wait for");
    must_do(cu.cuMemHostGetDevicePointer_v2(&holds.seen, holds.words, 0),
            "cuMemHostGetDevicePointer");
}

static int row_of(CUstream stream)
{
    for (int i = 0; i < holds.used; i++)
        if (holds.stream[i] == stream)
            return i;
    must_do(holds.used < HOLDS ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY, "held streams");
    holds.stream[holds.used] = stream;
    return holds.used++;
}

void case_hold(CUstream stream, int hold)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    void *own = dlsym(library, "fakeHold");
    if (own) {                            /* also where the tests' driver plays the real one */
        void (*hold_it)(CUstream, int);
        memcpy(&hold_it, &own, sizeof own);
        hold_it(stream, hold);
        return;
    }
    pthread_mutex_lock(&holds.lock);
    if (!holds.words)
        prepare(dlsym(library, "cuStreamWaitValue32_v2"));
    int i = row_of(stream);
    if (hold)
        must_do(holds.wait(stream, holds.seen + (CUdeviceptr)i * sizeof *holds.words,
                           ++holds.times[i], WAIT_GEQ),
                "cuStreamWaitValue32");
    else
        store_release32(&holds.words[i], holds.times[i]);
    pthread_mutex_unlock(&holds.lock);
}

uint64_t case_calls_of(const char *symbol) { return case_real() ? 0 : fake.fakeCallsOf(symbol); }

int case_meet(tutti_comm *comm)
{
    tutti_work *work;
    int r = tutti_barrier(comm, &(tutti_call){ .work = &work });
    if (r < 0)
        return r;
    while ((r = tutti_test(work)) == -EAGAIN)
        tutti_cuda_free(NULL, comm);
    int ended = tutti_wait(work, -1);
    return r < 0 ? r : ended;
}
