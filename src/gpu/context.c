/* All comms and all ranks (threads) of a process share one context of a device, since a context
 * costs some 100 ms and 300 MiB of the device. It is the primary context, which the CUDA runtime
 * and PyTorch use, too. It is released with the last comm that needs it, because another program
 * may need the device. */
#include "gpu/context.h"

#include "gpu/calm.h"
#include "gpu/kernels.h"
#include "gpu/topology.h"
#include "os/numa.h"

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
    int node;                                /* -1: unknown, or the machine has one */
    CUevent spare[EVENTS_KEPT];
    int spares;
    struct kernels kernels;
    bool ready;                              /* they have been loaded, or refused */
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

void gpu_near(const struct gpu *gpu, void *at, size_t bytes)
{
    struct numa_set set = { { 0 } };
    if (gpu->node < 0)
        return;
    numa_set_add(&set, gpu->node);
    struct numa_policy policy = numa_prefer(&set);
    if (!numa_policy_is_local(&policy))
        (void)numa_policy_set(at, bytes, &policy);   /* refused: then they come from any node */
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
    gpu->node = numa_several() ? topology_node(gpu->call, gpu->device, &gpu->about) : -1;
    kernels_begin(&gpu->kernels);
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

/* Of one that is in no list any more. Not under the lock, since the driver may wait for the device,
 * which stops nobody who needs another one. What a broken context does not take back is freed with
 * the process. */
static void gpu_end(struct gpu *gpu)
{
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
    bool last = --gpu->references == 0;
    for (struct gpu **at = &all.first; last && *at; at = &(*at)->next)
        if (*at == gpu) {
            *at = gpu->next;
            break;
        }
    pthread_mutex_unlock(&all.lock);
    if (last)
        gpu_end(gpu);
}

static int gpu_lives(struct gpu *gpu, struct text *why)
{
    CUresult error = calm_died(gpu->call);
    return error ? gpu_failed(gpu, "cuStreamIsCapturing", error, why) : 0;
}

/* Not under the lock, since the driver may wait for the device. */
static int gpu_ready(struct gpu *gpu, struct text *why)
{
    char words[KERNELS_WORDS];
    struct text said = TEXT_IN(words);
    int r = gpu_enter(gpu, why);
    if (r < 0)
        return r;
    r = gpu_lives(gpu, why);
    text_clear(&said);
    if (r == 0 && (r = kernels_ready(&gpu->kernels, gpu->call, &said)) < 0 && why) {
        gpu_named(gpu, why);
        text_add(why, "%s", words);
    }
    gpu_leave(gpu);
    pthread_mutex_lock(&all.lock);
    gpu->ready = r == 0;
    pthread_mutex_unlock(&all.lock);
    return r;
}

/* A reference to the GPU if it has begun. Under the lock. */
static struct gpu *gpu_find(int ordinal)
{
    struct gpu *g = all.first;
    while (g && g->ordinal != ordinal)
        g = g->next;
    if (g)
        g->references++;
    return g;
}

/* Two threads may begin the same one; the second one's is ended again. */
static int gpu_first(int ordinal, struct gpu **gpu, struct text *why)
{
    struct gpu *own = calloc(1, sizeof *own);
    if (!own)
        return -ENOMEM;
    own->ordinal = ordinal;
    int r = gpu_begin(own, why);
    if (r < 0) {
        free(own);
        return r;
    }
    pthread_mutex_lock(&all.lock);
    *gpu = gpu_find(ordinal);
    if (!*gpu) {
        own->next = all.first;
        own->references = 1;
        *gpu = all.first = own;
    }
    pthread_mutex_unlock(&all.lock);
    if (*gpu != own)
        gpu_end(own);
    return 0;
}

int gpu_open(int ordinal, struct gpu **gpu, struct text *why)
{
    pthread_mutex_lock(&all.lock);
    struct gpu *g = gpu_find(ordinal);
    bool ready = g && g->ready;
    pthread_mutex_unlock(&all.lock);
    int r = g ? 0 : gpu_first(ordinal, &g, why);
    if (r == 0 && !ready) {
        r = gpu_ready(g, why);
        if (r < 0)
            gpu_close(g);
    }
    if (r == 0)
        *gpu = g;
    return r;
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
