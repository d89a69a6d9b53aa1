/* SPDX-License-Identifier: MIT */
/* A GPU, by CUDA's driver interface as far as this needs it, found at run time: no header and no
 * library of CUDA is needed to build it. A program that is compiled by nvcc, or that has PyTorch's
 * tensors, has all of this already: only the pointers go to tutti. */
#include "train_cuda/net.h"

#include "train_cuda/kernels.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <tutti_cuda.h>

typedef uint64_t address;                            /* of device memory: CUdeviceptr */

enum { BUFFERS = 6, THREADS = 64 };
enum kernel { KERNEL_HIDDEN, KERNEL_ERROR, KERNEL_IN, KERNEL_OUT, KERNEL_STEP, KERNELS };

struct cuda {                                   /* the names in the driver stand in `functions` */
    int (*init)(unsigned flags);
    int (*error_string)(int error, const char **words);
    int (*devices)(int *count);
    int (*device)(int *device, int ordinal);
    int (*name)(char *name, int room, int device);
    int (*retain)(void **context, int device);
    int (*release)(int device);
    int (*use)(void *context);
    int (*stream)(void **stream, unsigned flags);
    int (*stream_end)(void *stream);
    int (*wait)(void *stream);
    int (*to_device)(address to, const void *from, size_t bytes, void *stream);
    int (*to_host)(void *to, address from, size_t bytes, void *stream);
    int (*load)(void **module, const void *text);
    int (*unload)(void *module);
    int (*find)(void **function, void *module, const char *name);
    int (*launch)(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                  unsigned bz, unsigned shared, void *stream, void **parameters, void **extra);
};

static const char *const functions[] = {
    "cuInit", "cuGetErrorString", "cuDeviceGetCount", "cuDeviceGet", "cuDeviceGetName",
    "cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRelease_v2", "cuCtxSetCurrent", "cuStreamCreate",
    "cuStreamDestroy_v2", "cuStreamSynchronize", "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2",
    "cuModuleLoadData", "cuModuleUnload", "cuModuleGetFunction", "cuLaunchKernel",
};
_Static_assert(sizeof(struct cuda) == sizeof functions, "a name for each");

struct gpu {
    struct place place;
    struct cuda call;
    char name[96];
    int device, buffers;
    void *context, *module[KERNELS], *kernel[KERNELS];
    void *buffer[BUFFERS];
};

/* CUDA's error as ours. */
static int failed(const struct gpu *gpu, const char *what, int error, char *why)
{
    const char *words = NULL;
    if (!error) return 0;
    gpu->call.error_string(error, &words);
    snprintf(why, WHY, "%s: CUDA error %d: %s", what, error, words ? words : "unknown");
    return -EIO;
}

static address at_device(const float *at) { return (address)(uintptr_t)at; }

/* Memory that the other ranks may keep open: tutti's. What a program has from cuMemAlloc or
 * cudaMalloc does, too, and is opened anew for each operation. */
static int gpu_room(struct place *place, float **at, size_t count, char *why)
{
    struct gpu *gpu = (struct gpu *)place;
    void *got = NULL;
    int error = gpu->buffers < BUFFERS
        ? tutti_cuda_alloc(&got, count * sizeof **at, gpu->device, place->world)
        : -ENOMEM;
    if (error < 0) {
        snprintf(why, WHY, "%s", tutti_explain(place->world));
        return error;
    }
    gpu->buffer[gpu->buffers++] = got;
    *at = got;
    return 0;
}

static int gpu_put(struct place *place, float *to, const float *from, size_t count, char *why)
{
    struct gpu *gpu = (struct gpu *)place;
    int error = gpu->call.to_device(at_device(to), from, count * sizeof *to, place->stream);
    if (!error) error = gpu->call.wait(place->stream);
    return failed(gpu, "copying to the device", error, why);
}

static int gpu_get(struct place *place, float *to, const float *from, size_t count, char *why)
{
    struct gpu *gpu = (struct gpu *)place;
    int error = gpu->call.to_host(to, at_device(from), count * sizeof *to, place->stream);
    if (!error) error = gpu->call.wait(place->stream);
    return failed(gpu, "copying from the device", error, why);
}

/* Starts a kernel of `count` threads, behind whatever is in the stream. */
static int launch(struct gpu *gpu, enum kernel which, const struct net *net, int count,
                  float factor, char *why)
{
    address x = at_device(net->x), y = at_device(net->y), hidden = at_device(net->hidden),
            error = at_device(net->error);
    address weights = at_device(net->weights), gradient = at_device(net->gradient);
    uint32_t threads = (uint32_t)count, rows = (uint32_t)net->rows;
    void *parameters[] = { &threads, &rows, &factor, &x, &y, &hidden, &error, &weights, &gradient };
    int code = gpu->call.launch(gpu->kernel[which], (threads + THREADS - 1) / THREADS, 1, 1,
                                THREADS, 1, 1, 0, gpu->place.stream, parameters, NULL);
    return failed(gpu, "starting a kernel", code, why);
}

static int gpu_learn(struct place *place, const struct net *net, char *why)
{
    struct gpu *gpu = (struct gpu *)place;
    const float scale = 2.0f / (float)net->rows;
    int error = launch(gpu, KERNEL_HIDDEN, net, net->rows * HIDDEN, 0, why);
    if (!error) error = launch(gpu, KERNEL_ERROR, net, net->rows, 0, why);
    if (!error) error = launch(gpu, KERNEL_IN, net, INPUTS * HIDDEN, scale, why);
    if (!error) error = launch(gpu, KERNEL_OUT, net, HIDDEN + 1, scale, why);
    return error;
}

static int gpu_step(struct place *place, const struct net *net, float rate, char *why)
{
    return launch((struct gpu *)place, KERNEL_STEP, net, WEIGHTS, rate, why);
}

static void gpu_close(struct place *place)
{
    struct gpu *gpu = (struct gpu *)place;
    if (!gpu->context) return;
    if (place->stream) gpu->call.wait(place->stream);
    for (int i = 0; i < gpu->buffers; i++) tutti_cuda_free(gpu->buffer[i], place->world);
    for (int i = 0; i < KERNELS; i++)
        if (gpu->module[i]) gpu->call.unload(gpu->module[i]);
    if (place->stream) gpu->call.stream_end(place->stream);
    gpu->call.release(gpu->device);
    gpu->context = NULL;
}

static int find_driver(struct gpu *gpu, char *why)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        snprintf(why, WHY, "no CUDA driver: there is no libcuda.so.1");
        return -ENODEV;
    }
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        void *found = dlsym(library, functions[i]);
        if (!found) {
            snprintf(why, WHY, "the CUDA driver has no %s", functions[i]);
            return -ENODEV;
        }
        memcpy((char *)&gpu->call + i * sizeof found, &found, sizeof found);
    }
    return 0;
}

static int open_device(struct gpu *gpu, char *why)
{
    int count = 0, error = gpu->call.init(0);
    if (!error) error = gpu->call.devices(&count);
    if (!error && count < 1) error = 100;
    if (error) return failed(gpu, "no GPU", error, why);
    error = gpu->call.device(&gpu->device, tutti_rank(gpu->place.world) % count);
    if (!error) error = gpu->call.name(gpu->name, (int)sizeof gpu->name, gpu->device);
    if (!error) error = gpu->call.retain(&gpu->context, gpu->device);
    if (!error) error = gpu->call.use(gpu->context);
    /* one that does not wait for the default stream */
    if (!error) error = gpu->call.stream(&gpu->place.stream, 1);
    if (error) return failed(gpu, "the GPU", error, why);
    for (int i = 0; i < KERNELS && !error; i++) {
        error = gpu->call.load(&gpu->module[i], kernels[i].text);
        if (!error) error = gpu->call.find(&gpu->kernel[i], gpu->module[i], kernels[i].name);
    }
    return failed(gpu, "compiling the kernels", error, why);
}

struct place *gpu_open(tutti_comm *world, char *why)
{
    static struct gpu gpu = {
        .place = { NULL, NULL, NULL, gpu_room, gpu_put, gpu_get, gpu_learn, gpu_step, gpu_close }
    };
    gpu.place.name = gpu.name;
    gpu.place.world = world;
    int error = find_driver(&gpu, why);
    if (!error) error = open_device(&gpu, why);
    if (error) gpu_close(&gpu.place);
    return error ? NULL : &gpu.place;
}
