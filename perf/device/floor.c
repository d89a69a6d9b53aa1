/* What the GPU, its bus and its driver give at best, in this run, by CUDA's own events: the floors
 * that the roads are held against. Host memory is a mapping like an arena's, registered as an
 * arena's staging is. In a process of its own. */
#include "device/device.h"

#include "gpu/kernel.h"
#include "gpu/ptx.h"
#include "harness/stamp.h"
#include "os/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    MEBI = 1 << 20,
    COPY = 256 * MEBI,
    SMALL = MEBI,
    TURNS = 15,
    LATENCY_TURNS = 200,
    ENGINES = 2
};

struct yard {
    const struct cuda_api *call;
    CUstream stream[ENGINES];
    CUevent begin, end, half;
    CUdeviceptr device[ENGINES];                     /* `bytes` each */
    unsigned char *host;                             /* twice as many, registered */
    size_t bytes;
    int turns;
    const char *what;                                /* the function that failed */
};

#define TRY(y, call_) \
    do { \
        CUresult said_ = (y)->call->call_; \
        if (said_) { \
            (y)->what = #call_; \
            return said_; \
        } \
    } while (0)

/* ---- copies ---------------------------------------------------------------------------------- */

enum { DOWN = 1, UP = 2, INSIDE = 4 };

static CUresult start(struct yard *y, int engine, int way)
{
    CUdeviceptr device = y->device[engine];
    unsigned char *host = y->host + (size_t)engine * y->bytes;
    if (way == DOWN)
        TRY(y, cuMemcpyDtoHAsync_v2(host, device, y->bytes, y->stream[engine]));
    else if (way == UP)
        TRY(y, cuMemcpyHtoDAsync_v2(device, host, y->bytes, y->stream[engine]));
    else
        TRY(y, cuMemcpyDtoDAsync_v2(y->device[1], y->device[0], y->bytes, y->stream[engine]));
    return 0;
}

/* From the event before the first copy to that after the last: with two, the second engine waits
   for the first's beginning, and the first's end for the second's. */
static CUresult one_turn(struct yard *y, int ways, double *ns)
{
    float ms = 0;
    bool both = ways == (DOWN | UP);
    TRY(y, cuEventRecord(y->begin, y->stream[0]));
    if (both)
        TRY(y, cuStreamWaitEvent(y->stream[1], y->begin, 0));
    CUresult error = start(y, 0, both ? DOWN : ways);
    if (!error && both)
        error = start(y, 1, UP);
    if (error)
        return error;
    if (both) {
        TRY(y, cuEventRecord(y->half, y->stream[1]));
        TRY(y, cuStreamWaitEvent(y->stream[0], y->half, 0));
    }
    TRY(y, cuEventRecord(y->end, y->stream[0]));
    TRY(y, cuEventSynchronize(y->end));
    TRY(y, cuEventElapsedTime(&ms, y->begin, y->end));
    *ns = (double)ms * 1e6;
    return 0;
}

static CUresult rate(struct yard *y, int ways, double times, double *value, double *spread)
{
    struct series s = { NULL, 0, 0 };
    double ns = 0;
    CUresult error = 0;
    for (int i = 0; i <= y->turns && !error; i++) {
        error = one_turn(y, ways, &ns);
        if (!error && i && ns > 0)                   /* the first one is to warm up */
            series_add(&s, ns);
    }
    double median = series_median(&s);
    if (median > 0) {
        *value = times * (double)y->bytes / median * 1e9;
        *spread = (series_quantile(&s, 0.75) - series_quantile(&s, 0.25)) / median;
    }
    series_free(&s);
    return error;
}

/* ---- latencies: by the host's clock, as a rank sees them ------------------------------------- */

static CUresult kernel_of(struct yard *y, CUmodule *module, CUfunction *function)
{
    char name[PTX_NAME], *room = malloc(PTX_ROOM);
    struct text text = { room, PTX_ROOM, 0 }, named = TEXT_IN(name);
    if (!room)
        return CUDA_ERROR_OUT_OF_MEMORY;
    text_clear(&text);
    text_clear(&named);
    ptx_fold(&text, TUTTI_F32, TUTTI_SUM);
    ptx_name(&named, TUTTI_F32, TUTTI_SUM);
    CUresult error = y->call->cuModuleLoadData(module, room);
    free(room);
    if (!error)
        error = y->call->cuModuleGetFunction(function, *module, name);
    y->what = "loading a kernel";
    return error;
}

static CUresult latency(struct yard *y, CUfunction function, double *value)
{
    struct series s = { NULL, 0, 0 };
    struct kernel_fold fold = {
        .out = y->device[0], .count = 1, .inputs = 1, .divisor = 1, .in = { y->device[1] }
    };
    void *parameters[] = { &fold };
    CUresult error = 0;
    int turns = y->turns < TURNS ? y->turns : LATENCY_TURNS;
    for (int i = 0; i <= turns && !error; i++) {
        uint64_t begin = stamp_now();
        if (function)
            error = y->call->cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, y->stream[0],
                                            parameters, NULL);
        else
            error = y->call->cuMemcpyDtoHAsync_v2(y->host, y->device[0], 4096, y->stream[0]);
        if (!error)
            error = y->call->cuStreamSynchronize(y->stream[0]);
        if (!error && i)
            series_add(&s, stamp_ns(stamp_now() - begin));
    }
    *value = error ? 0 : series_median(&s);
    series_free(&s);
    y->what = function ? "starting a kernel" : "copying 4 KiB";
    return error;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static CUresult prepare(struct yard *y)
{
    CUcontext context;
    TRY(y, cuDevicePrimaryCtxRetain(&context, 0));
    TRY(y, cuCtxSetCurrent(context));
    for (int i = 0; i < ENGINES; i++) {
        TRY(y, cuStreamCreate(&y->stream[i], CU_STREAM_NON_BLOCKING));
        TRY(y, cuMemAlloc_v2(&y->device[i], y->bytes));
        TRY(y, cuMemsetD8Async(y->device[i], 1, y->bytes, y->stream[i]));
        TRY(y, cuStreamSynchronize(y->stream[i]));
    }
    TRY(y, cuEventCreate(&y->begin, CU_EVENT_DEFAULT));
    TRY(y, cuEventCreate(&y->end, CU_EVENT_DEFAULT));
    TRY(y, cuEventCreate(&y->half, CU_EVENT_DISABLE_TIMING));
    TRY(y,
        cuMemHostRegister_v2(y->host, ENGINES * y->bytes,
                             CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP));
    return 0;
}

static CUresult finish(struct yard *y)
{
    TRY(y, cuMemHostUnregister(y->host));
    for (int i = 0; i < ENGINES; i++) {
        TRY(y, cuMemFree_v2(y->device[i]));
        TRY(y, cuStreamDestroy_v2(y->stream[i]));
    }
    TRY(y, cuEventDestroy_v2(y->begin));
    TRY(y, cuEventDestroy_v2(y->end));
    TRY(y, cuEventDestroy_v2(y->half));
    return 0;
}

static CUresult measure(struct yard *y, struct floors *f)
{
    CUmodule module = NULL;
    CUfunction function = NULL;
    CUresult error = rate(y, DOWN, 1, &f->down, &f->spread[0]);
    if (!error)
        error = rate(y, UP, 1, &f->up, &f->spread[1]);
    if (!error)
        error = rate(y, DOWN | UP, 1, &f->both, &f->spread[2]);
    if (!error)
        error = rate(y, INSIDE, 2, &f->hbm, &f->spread[3]);         /* a byte is read and written */
    if (!error)
        error = latency(y, NULL, &f->copy_ns);
    if (!error)
        error = kernel_of(y, &module, &function);
    if (!error)
        error = latency(y, function, &f->launch_ns);
    if (module)
        y->call->cuModuleUnload(module);
    return error;
}

static void in_child(struct floors *f, bool quick)
{
    struct text why = { f->why, sizeof f->why, 0 };
    struct yard y = { .bytes = quick ? SMALL : COPY, .turns = quick ? 3 : TURNS };
    const struct driver *driver;
    struct driver_device device;
    text_clear(&why);
    if (driver_open(&driver, &why) < 0 || driver_device(driver, 0, &device, &why) < 0)
        return;
    y.call = &driver->call;
    f->bytes = y.bytes;
    snprintf(f->gpu, sizeof f->gpu, "%s", device.name);
    snprintf(f->driver, sizeof f->driver, "%d.%d", driver->version / 1000,
             driver->version % 1000 / 10);
    int fd = memory_create(ENGINES * y.bytes), error = 0;
    y.host = fd < 0 ? NULL : memory_map(fd, ENGINES * y.bytes, &error);
    if (!y.host) {
        text_add(&why, "no host memory for the copies");
        return;
    }
    memset(y.host, 1, ENGINES * y.bytes);
    CUresult said = prepare(&y);
    if (!said)
        said = measure(&y, f);
    if (said)
        driver_failed(&driver->call, y.what, said, &why);
    else
        finish(&y);
}

int floors_measure(struct floors *f, bool quick)
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        in_child(f, quick);
        exit(0);                            /* as a program of its own would, with CUDA's own end */
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
        snprintf(f->why + strlen(f->why), sizeof f->why - strlen(f->why), "%sits process failed",
                 f->why[0] ? "; " : "");
    return f->gpu[0] ? 0 : -1;
}

/* pinned: what all ranks send goes down, what all receive goes up, at the same time. leader and
 * peers: 2 N S of the GPU's memory. */
double floor_ns(const struct floors *f, const struct point *p, bool *pcie)
{
    double n = p->ranks, s = (double)p->bytes;
    *pcie = p->system == SYSTEM_PINNED || p->system == SYSTEM_GLOO;
    if (*pcie) {
        double down = p->kind == DO_ALL_REDUCE ? n * s : s;
        double up = p->kind == DO_ALL_REDUCE ? n * s : (n - 1) * s;
        double most = down > up ? down : up;
        return f->both > 0 ? most / f->both * 1e9 : 0;
    }
    double moved = p->kind == DO_BROADCAST ? 2 * (n - 1) * s : 2 * n * s;
    return f->hbm > 0 ? moved / f->hbm * 1e9 : 0;
}
