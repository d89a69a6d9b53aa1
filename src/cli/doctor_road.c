/* tutti doctor: the roads that one process can try alone. Host memory is registered, and copied to
 * the GPU and back; a kernel is loaded and run. Cost: 1 MiB each, and compiling a kernel. */
#include "cli/doctor.h"

#include "base/text.h"
#include "gpu/kernel.h"
#include "gpu/ptx.h"
#include "os/memory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void doctor_failed(const struct driver *driver, struct doctor_road *road, const char *function,
                   CUresult error)
{
    struct text why = TEXT_IN(road->words);
    text_clear(&why);
    road->fault = driver_failed(&driver->call, function, error, &why) != -ENOTSUP;
    road->dead = error == CUDA_ERROR_ILLEGAL_ADDRESS || error == CUDA_ERROR_LAUNCH_TIMEOUT ||
                 (error >= CUDA_ERROR_ASSERT && error <= CUDA_ERROR_LAUNCH_FAILED);
}

static void remedy(struct doctor_road *road, const char *words)
{
    snprintf(road->remedy, sizeof road->remedy, "%s", words);
}

/* ---- pinned: memory as an arena's, by both copy engines -------------------------------------- */

/* Copies the first half to the GPU, and back into the second half. Another process checks the marks
 * in gpu->memory, so they are put back. */
static void copy_round(const struct driver *driver, const struct doctor_gpu *gpu, int ordinal,
                       unsigned char *at, struct doctor_road *road)
{
    const size_t half = DOCTOR_BYTES / 2;
    CUdeviceptr device = 0;
    for (size_t i = 0; i < half; i++) {
        at[i] = (unsigned char)(i * 7 + 1);
        at[half + i] = 0;
    }
    const char *function = "cuMemHostGetDevicePointer";
    CUresult error = driver->call.cuMemHostGetDevicePointer_v2(&device, at, 0);
    if (!error) {
        function = "cuMemcpyHtoDAsync";
        error = driver->call.cuMemcpyHtoDAsync_v2(gpu->memory, at, half, NULL);
    }
    if (!error) {
        function = "cuMemcpyDtoHAsync";
        error = driver->call.cuMemcpyDtoHAsync_v2(at + half, gpu->memory, half, NULL);
    }
    if (!error)
        error = driver->call.cuMemsetD8Async(gpu->memory, doctor_mark(ordinal), DOCTOR_BYTES, NULL);
    if (error) {
        doctor_failed(driver, road, function, error);
        if (!road->dead)
            driver->call.cuStreamSynchronize(NULL);  /* the memory will be freed next */
        return;
    }
    error = driver->call.cuStreamSynchronize(NULL);
    if (error)
        doctor_failed(driver, road, "cuStreamSynchronize", error);
    else if (memcmp(at, at + half, half) != 0) {
        snprintf(road->words, sizeof road->words,
                 "what was copied to the GPU and back is not what it was");
        road->fault = true;
    } else
        road->open = true;
}

void doctor_pinned(const struct driver *driver, const struct doctor_gpu *gpu, int ordinal,
                   struct doctor_road *road)
{
    int error = 0, fd = memory_create(DOCTOR_BYTES);
    unsigned char *at = fd < 0 ? NULL : memory_map(fd, DOCTOR_BYTES, &error);
    if (at) {
        doctor_pulse("host memory to be registered with GPU %d", ordinal);
        CUresult said = driver->call.cuMemHostRegister_v2(at, DOCTOR_BYTES,
                                                          CU_MEMHOSTREGISTER_PORTABLE
                                                              | CU_MEMHOSTREGISTER_DEVICEMAP);
        if (said) {
            doctor_failed(driver, road, "cuMemHostRegister", said);
            remedy(road,
                   "a container runtime, or a kernel, that lets the driver pin shared memory; "
                   "without it copies to and from the GPU take several times as long");
        } else {
            copy_round(driver, gpu, ordinal, at, road);
            driver->call.cuMemHostUnregister(at);
        }
        memory_unmap(at, DOCTOR_BYTES);
    } else {
        snprintf(road->words, sizeof road->words, "no shared memory of this process: %s",
                 strerror(fd < 0 ? -fd : -error));
    }
    if (fd >= 0)
        close(fd);
    if (!road->open)
        road->fault = true;                          /* without this road there is none */
}

/* ---- kernels: one that every GPU should run, and what it should give ------------------------- */

enum { FLOATS = 256, APART = FLOATS * (int)sizeof(float) };

/* in[0] + in[1] into out: three parts of gpu->memory, without its end, where the marks are. */
static CUresult run_sum(const struct driver *driver, const struct doctor_gpu *gpu, CUfunction sum,
                        const char **function, float *result)
{
    float one[FLOATS], two[FLOATS];
    struct kernel_fold fold = { .count = FLOATS, .inputs = 2 };
    void *parameters[] = { &fold };
    for (int i = 0; i < FLOATS; i++) {
        one[i] = (float)i;
        two[i] = 0.5f;
    }
    fold.in[0] = gpu->memory;
    fold.in[1] = gpu->memory + APART;
    fold.out = gpu->memory + 2 * APART;
    *function = "cuMemcpyHtoDAsync";
    CUresult error = driver->call.cuMemcpyHtoDAsync_v2(fold.in[0], one, sizeof one, NULL);
    if (!error)
        error = driver->call.cuMemcpyHtoDAsync_v2(fold.in[1], two, sizeof two, NULL);
    if (!error) {
        *function = "cuLaunchKernel";
        error = driver->call.cuLaunchKernel(sum, 2, 1, 1, 128, 1, 1, 0, NULL, parameters, NULL);
    }
    if (!error) {
        *function = "cuMemcpyDtoHAsync";
        error = driver->call.cuMemcpyDtoHAsync_v2(result, fold.out, APART, NULL);
    }
    if (!error) {
        *function = "cuStreamSynchronize";
        error = driver->call.cuStreamSynchronize(NULL);
    }
    return error;
}

static CUresult try_sum(const struct driver *driver, const struct doctor_gpu *gpu, CUmodule module,
                        const char **function, bool *right)
{
    char name[PTX_NAME];
    struct text t = TEXT_IN(name);
    float result[FLOATS] = { 0 };
    CUfunction sum;
    text_clear(&t);
    ptx_name(&t, TUTTI_F32, TUTTI_SUM);
    *function = "cuModuleGetFunction";
    CUresult error = driver->call.cuModuleGetFunction(&sum, module, name);
    if (!error)
        error = run_sum(driver, gpu, sum, function, result);
    *right = true;
    for (int i = 0; i < FLOATS; i++)
        *right = *right && result[i] == (float)i + 0.5f;
    return error;
}

static void remedy_for(struct doctor_road *road, CUresult error)
{
    if (error == CUDA_ERROR_JIT_COMPILER_NOT_FOUND)
        remedy(road,
               "libnvidia-ptxjitcompiler.so.1 belongs to the driver; in a container: "
               "NVIDIA_DRIVER_CAPABILITIES=compute,utility");
    else if (error == CUDA_ERROR_INVALID_PTX || error == CUDA_ERROR_NO_BINARY_FOR_GPU)
        remedy(road,
               "a GPU of compute capability 7.0 (Volta) or later is needed; else the CPU folds");
    else if (error == CUDA_ERROR_UNSUPPORTED_PTX_VERSION)
        remedy(road, "the JIT compiler is older than the driver: reinstall the driver");
}

void doctor_kernels(const struct driver *driver, const struct doctor_gpu *gpu, int ordinal,
                    struct doctor_road *road)
{
    CUmodule module;
    const char *function = "cuModuleLoadData";
    bool right = false;
    char *room = malloc(PTX_ROOM);
    struct text text = { room, PTX_ROOM, 0 };
    if (!room) {
        snprintf(road->words, sizeof road->words, "out of memory");
        return;
    }
    text_clear(&text);
    ptx_fold(&text, TUTTI_F32, TUTTI_SUM);           /* this pair exists and fits */
    doctor_pulse("a kernel to be compiled for GPU %d", ordinal);
    CUresult error = driver->call.cuModuleLoadData(&module, room);
    if (!error) {
        doctor_pulse("a kernel to run on GPU %d", ordinal);
        error = try_sum(driver, gpu, module, &function, &right);
        driver->call.cuModuleUnload(module);
    }
    free(room);
    road->open = !error && right;
    if (error)
        doctor_failed(driver, road, function, error);
    else if (!right)
        snprintf(road->words, sizeof road->words,
                 "a sum of floats on the GPU is not what it should be");
    road->fault = !road->open;
    if (error)
        remedy_for(road, error);
}
