/* All comms and all ranks (threads) of a process share one context of a device, since a context
 * costs some 100 ms and 300 MiB of the device. It is the primary context, which the CUDA runtime
 * and PyTorch use, too. It is released with the last comm that needs it, because another program
 * may need the device. */
#include "gpu/context.h"

#include "gpu/calm.h"
#include "gpu/kernels.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

enum { EVENTS_KEPT = 32 };

struct gpu {
    const struct cuda_api *call;
    int ordinal, references;
    CUdevice device;
    CUcontext context;
    struct driver_device about;
    CUevent spare[EVENTS_KEPT];
    int spares;
    struct kernels kernels;
    struct gpu *next;
};

static struct {
    pthread_mutex_t lock;
    struct gpu *first;
} all = { .lock = PTHREAD_MUTEX_INITIALIZER };

const struct cuda_api *gpu_api(const struct gpu *gpu) { return gpu->call; }
int gpu_ordinal(const struct gpu *gpu) { return gpu->ordinal; }
CUcontext gpu_context(const struct gpu *gpu) { return gpu->context; }
const struct driver_device *gpu_about(const struct gpu *gpu) { return &gpu->about; }
struct kernels *gpu_kernels(struct gpu *gpu) { return &gpu->kernels; }

void gpu_named(const struct gpu *gpu, struct text *why)
{
    text_add(why, "device %d (%s, bus %s): ", gpu->ordinal,
             gpu->about.name[0] ? gpu->about.name : "?", gpu->about.bus[0] ? gpu->about.bus : "?");
}

int gpu_failed(const struct gpu *gpu, const char *function, CUresult error, struct text *why)
{
    if (why)
        gpu_named(gpu, why);
    driver_failed(gpu->call, function, error, why);
    return error == CUDA_ERROR_OUT_OF_MEMORY ? -ENOMEM : -EIO;
}

static int gpu_begin(struct gpu *gpu, struct text *why)
{
    const struct driver *driver;
    int r = driver_open(&driver, why);
    if (r < 0)
        return r;
    gpu->call = &driver->call;
    r = driver_device(driver, gpu->ordinal, &gpu->about, why);
    if (r < 0)
        return r;
    CUresult error = gpu->call->cuDeviceGet(&gpu->device, gpu->ordinal);
    if (error)
        return gpu_failed(gpu, "cuDeviceGet", error, why);
    error = gpu->call->cuDevicePrimaryCtxRetain(&gpu->context, gpu->device);
    if (error)
        return gpu_failed(gpu, "cuDevicePrimaryCtxRetain", error, why);
    kernels_begin(&gpu->kernels);
    return 0;
}

int gpu_open(int ordinal, struct gpu **gpu, struct text *why)
{
    int r = 0;
    pthread_mutex_lock(&all.lock);
    struct gpu *g = all.first;
    while (g && g->ordinal != ordinal)
        g = g->next;
    if (!g) {
        g = calloc(1, sizeof *g);
        r = -ENOMEM;
        if (g) {
            g->ordinal = ordinal;
            r = gpu_begin(g, why);
        }
        if (r < 0) {
            free(g);
            pthread_mutex_unlock(&all.lock);
            return r;
        }
        g->next = all.first;
        all.first = g;
    }
    g->references++;
    *gpu = g;
    pthread_mutex_unlock(&all.lock);
    return 0;
}

void gpu_hold(struct gpu *gpu)
{
    pthread_mutex_lock(&all.lock);
    gpu->references++;
    pthread_mutex_unlock(&all.lock);
}

void gpu_event_destroy(struct gpu *gpu, CUevent event)
{
    if (!gpu_enter_to_give(gpu))
        return;
    gpu->call->cuEventDestroy_v2(event);
    gpu_leave(gpu);
}

/* Under the lock, so nobody can begin the same device meanwhile. What a broken context does not
 * take back is freed with the process. */
static void gpu_end(struct gpu *gpu)
{
    for (struct gpu **at = &all.first; *at; at = &(*at)->next)
        if (*at == gpu) {
            *at = gpu->next;
            break;
        }
    for (int i = 0; i < gpu->spares; i++)
        gpu_event_destroy(gpu, gpu->spare[i]);
    bool entered = gpu_enter_to_give(gpu);
    kernels_end(&gpu->kernels, gpu->call);
    if (entered)
        gpu_leave(gpu);
    gpu->call->cuDevicePrimaryCtxRelease_v2(gpu->device);
    free(gpu);
}

void gpu_close(struct gpu *gpu)
{
    pthread_mutex_lock(&all.lock);
    if (--gpu->references == 0)
        gpu_end(gpu);
    pthread_mutex_unlock(&all.lock);
}

int gpu_enter(struct gpu *gpu, struct text *why)
{
    const char *function;
    CUresult error = calm_enter(gpu->call, gpu->context, &function);
    return error ? gpu_failed(gpu, function, error, why) : 0;
}

bool gpu_enter_to_give(struct gpu *gpu) { return calm_enter_to_give(gpu->call, gpu->context); }

void gpu_leave(struct gpu *gpu) { calm_leave(gpu->call); }

int gpu_event(struct gpu *gpu, CUevent *event, struct text *why)
{
    pthread_mutex_lock(&all.lock);
    bool found = gpu->spares > 0;
    if (found)
        *event = gpu->spare[--gpu->spares];
    pthread_mutex_unlock(&all.lock);
    if (found)
        return 0;
    CUresult error = gpu->call->cuEventCreate(event, CU_EVENT_DISABLE_TIMING);
    return error ? gpu_failed(gpu, "cuEventCreate", error, why) : 0;
}

void gpu_event_back(struct gpu *gpu, CUevent event)
{
    pthread_mutex_lock(&all.lock);
    bool kept = gpu->spares < EVENTS_KEPT;
    if (kept)
        gpu->spare[gpu->spares++] = event;
    pthread_mutex_unlock(&all.lock);
    if (!kept)
        gpu_event_destroy(gpu, event);
}
