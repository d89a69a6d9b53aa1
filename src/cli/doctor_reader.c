/* tutti doctor --gpu, the third process: on one GPU it opens the memory of each GPU that the second
 * offers, reads it by a copy engine and by a kernel, compares, and times. What does not end in time
 * it says, and ends without waiting for it. */
#include "cli/doctor.h"

#include "base/clock.h"
#include "gpu/kernel.h"
#include "gpu/ptx.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { TURNS = 4, BYTES = DOCTOR_NUMBERS * 4, ROOM = 2 * BYTES, HALF = DOCTOR_PAIR_BYTES / 2 };

struct reader {
    const struct driver *driver;
    int64_t patience_ns;
    CUstream stream;
    CUfunction fold;
    CUdeviceptr here, host_seen;                     /* this GPU's memory; `host` as it sees it */
    char *host;                                      /* ROOM: by copy engine, then by kernel */
};

static CUresult load(struct reader *r, const char **function)
{
    char name[PTX_NAME], *room = malloc(PTX_ROOM);
    struct text called = TEXT_IN(name), text = { room, PTX_ROOM, 0 };
    CUmodule module;
    if (!room)
        return CUDA_ERROR_OUT_OF_MEMORY;
    text_clear(&text);
    text_clear(&called);
    ptx_name(&called, TUTTI_F32, TUTTI_SUM);
    ptx_fold(&text, TUTTI_F32, TUTTI_SUM);           /* this pair exists and fits */
    *function = "cuModuleLoadData";
    CUresult error = r->driver->call.cuModuleLoadData(&module, room);
    free(room);
    if (!error)
        error = r->driver->call.cuModuleGetFunction(&r->fold, module, name);
    return error;
}

static CUresult begin(struct reader *r, int device, const char **function)
{
    const struct cuda_api *call = &r->driver->call;
    CUcontext context;
    *function = "cuDevicePrimaryCtxRetain";
    CUresult error = call->cuDevicePrimaryCtxRetain(&context, device);
    if (!error)
        error = call->cuCtxSetCurrent(context);
    *function = error ? *function : "cuStreamCreate";
    if (!error)
        error = call->cuStreamCreate(&r->stream, CU_STREAM_NON_BLOCKING);
    *function = error ? *function : "cuMemAlloc";
    if (!error)
        error = call->cuMemAlloc_v2(&r->here, HALF);
    r->host = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (r->host == MAP_FAILED)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *function = error ? *function : "cuMemHostRegister";
    if (!error)
        error = call->cuMemHostRegister_v2(r->host, ROOM,
                                           CU_MEMHOSTREGISTER_PORTABLE
                                               | CU_MEMHOSTREGISTER_DEVICEMAP);
    if (!error)
        error = call->cuMemHostGetDevicePointer_v2(&r->host_seen, r->host, 0);
    return error ? error : load(r, function);
}

/* 0, an error, or CUDA_ERROR_NOT_READY: it has not ended in time. */
static CUresult await(const struct reader *r)
{
    uint64_t began = clock_ns();
    CUresult error;
    while ((error = r->driver->call.cuStreamQuery(r->stream)) == CUDA_ERROR_NOT_READY
           && clock_ns() - began < (uint64_t)r->patience_ns)
        usleep(50);
    return error;
}

static CUresult enqueue(const struct reader *r, CUdeviceptr at)
{
    struct kernel_fold fold = {
        .out = r->host_seen + BYTES, .count = DOCTOR_NUMBERS, .inputs = 1, .divisor = 1,
        .in = { at }
    };
    void *parameters[] = { &fold };
    memset(r->host, 0xee, ROOM);
    CUresult error = r->driver->call.cuMemcpyDtoHAsync_v2(r->host, at, BYTES, r->stream);
    return error ? error
                 : r->driver->call.cuLaunchKernel(r->fold, 4, 1, 1, 128, 1, 1, 0, r->stream,
                                                  parameters, NULL);
}

static bool is_right(const char *got, uint64_t nonce)
{
    for (uint32_t i = 0; i < DOCTOR_NUMBERS; i++) {
        uint32_t expected = doctor_number(nonce, i);
        if (memcmp(got + (size_t)i * 4, &expected, 4) != 0)
            return false;
    }
    return true;
}

static CUresult measure(const struct reader *r, CUdeviceptr at, long *mb_s)
{
    CUresult error = 0;
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < TURNS && !error; i++) {
        uint64_t began = clock_ns();
        error = r->driver->call.cuMemcpyDtoDAsync_v2(r->here, at + HALF, HALF, r->stream);
        if (!error)
            error = await(r);
        uint64_t took = clock_ns() - began;
        best = took < best ? took : best;
    }
    *mb_s = (long)((double)HALF * 1e3 / (double)best);
    return error;
}

static enum doctor_pair look(const struct reader *r, CUdeviceptr at, uint64_t nonce, long *mb_s,
                             struct text *why)
{
    CUresult error = enqueue(r, at);
    if (!error)
        error = await(r);
    if (!error && !is_right(r->host, nonce)) {
        text_add(why, "other bytes are read there than were written");
        return PAIR_OTHER_BYTES;
    }
    if (!error && !is_right(r->host + BYTES, nonce)) {
        text_add(why, "kernels read other bytes there than were written");
        return PAIR_OTHER_BYTES;
    }
    if (!error)
        error = measure(r, at, mb_s);
    if (error == CUDA_ERROR_NOT_READY) {
        text_add(why, "to read it does not end");
        return PAIR_NEVER_ENDS;
    }
    if (error)
        driver_failed(&r->driver->call, "reading it", error, why);
    return error ? PAIR_UNKNOWN : PAIR_READS;
}

/* False: nothing can be asked any more. */
static bool read_peer(const struct reader *r, const struct doctor_offer *offer, int peer)
{
    char words[DOCTOR_WORDS];
    struct text why = TEXT_IN(words);
    CUdeviceptr at = 0;
    long mb_s = 0;
    enum doctor_pair verdict;
    text_clear(&why);
    if (!offer->gpu[peer].shared)
        return true;
    CUresult error = r->driver->call.cuIpcOpenMemHandle_v2(&at, offer->gpu[peer].handle,
                                                           CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
    if (error)
        verdict = driver_failed(&r->driver->call, "cuIpcOpenMemHandle", error, &why) == -ENOTSUP
            ? PAIR_UNSUPPORTED
            : PAIR_CLOSED;
    else
        verdict = look(r, at, offer->nonce[peer], &mb_s, &why);
    printf("%d %d %ld %s\n", peer, (int)verdict, mb_s, words);
    fflush(stdout);
    if (!error && verdict != PAIR_NEVER_ENDS)
        r->driver->call.cuIpcCloseMemHandle(at);
    return verdict != PAIR_NEVER_ENDS && verdict != PAIR_UNKNOWN;
}

int doctor_reader(int device)
{
    char words[DOCTOR_WORDS];
    struct text why = TEXT_IN(words);
    struct doctor_offer offer;
    struct reader r = { .driver = NULL };
    const char *function = "";
    text_clear(&why);
    if (doctor_orphan() || !doctor_read(STDIN_FILENO, &offer, sizeof offer) || offer.gpus < 0
        || offer.gpus > DOCTOR_GPUS)
        return 1;
    r.patience_ns = offer.patience_ns;
    int error = driver_open(&r.driver, &why);
    CUresult said = error ? 0 : begin(&r, device, &function);
    if (said)
        error = driver_failed(&r.driver->call, function, said, &why);
    if (error) {
        printf("* the GPU cannot be used by a second process: %s\n", words);
        return fflush(stdout) == 0 ? 0 : 1;
    }
    for (int peer = 0; peer < offer.gpus; peer++)
        if (!read_peer(&r, &offer, peer))
            _exit(0);                                /* the driver would wait for it */
    r.driver->call.cuMemHostUnregister(r.host);
    r.driver->call.cuMemFree_v2(r.here);
    r.driver->call.cuDevicePrimaryCtxRelease_v2(device);
    return 0;
}
