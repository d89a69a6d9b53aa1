/* Registering costs some 100 us a MiB and pins the pages in this process. So only pipelines and
 * bounce memory are registered, once, until their comm ends. PORTABLE: any GPU of this process may
 * copy. */
#include "gpu/staging.h"

#include "gpu/calm.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

struct pin {
    struct gpu *gpu;                                 /* by whose context it was registered */
    char *at;
    size_t bytes;
    uint64_t number;
    int users;
    bool registered, listed;
    struct pin *next;
};

static struct {
    pthread_mutex_t lock;
    struct pin *first;
} table = { .lock = PTHREAD_MUTEX_INITIALIZER };

bool staging_is(const struct pin *pin, const void *at, size_t bytes, uint64_t number)
{
    return pin && pin->listed && pin->at == at && pin->bytes == bytes && pin->number == number;
}

bool staging_registered(const struct pin *pin) { return pin->registered; }

/* Under the lock. Takes the pin out of the table; its users may hold it for a while. */
static void pin_let_go(struct pin *pin)
{
    for (struct pin **at = &table.first; *at; at = &(*at)->next)
        if (*at == pin) {
            *at = pin->next;
            break;
        }
    pin->listed = false;
    if (pin->registered && gpu_enter_to_give(pin->gpu)) {
        /* a broken context refuses, which does not matter any more */
        gpu_api(pin->gpu)->cuMemHostUnregister(pin->at);
        gpu_leave(pin->gpu);
    }
    pin->registered = false;
}

static struct pin *pin_find(char *at, size_t bytes, uint64_t number)
{
    for (struct pin *pin = table.first, *next; pin; pin = next) {
        next = pin->next;
        if (staging_is(pin, at, bytes, number))
            return pin;
        if (pin->at < at + bytes && at < pin->at + pin->bytes)
            pin_let_go(pin);
    }
    return NULL;
}

/* True: the error is one of registration, and the context is alive. False: any other call would
 * fail, too. */
static bool pin_harmless(CUresult error)
{
    return error == CUDA_ERROR_INVALID_VALUE || error == CUDA_ERROR_OUT_OF_MEMORY
        || error == CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED || error == CUDA_ERROR_NOT_PERMITTED
        || error == CUDA_ERROR_NOT_SUPPORTED || error == CUDA_ERROR_OPERATING_SYSTEM;
}

int staging_pin(struct gpu *gpu, void *at, size_t bytes, uint64_t number, struct pin **pin,
                struct text *why)
{
    int r = 0;
    pthread_mutex_lock(&table.lock);
    struct pin *p = pin_find(at, bytes, number);
    if (!p && !(p = calloc(1, sizeof *p)))
        r = -ENOMEM;
    else if (!p->users) {
        *p = (struct pin){ .gpu = gpu, .at = at, .bytes = bytes, .number = number, .listed = true };
        CUresult error = gpu_api(gpu)->cuMemHostRegister_v2(at, bytes,
                                                            CU_MEMHOSTREGISTER_PORTABLE
                                                                | CU_MEMHOSTREGISTER_DEVICEMAP);
        if (error && !pin_harmless(error)) {
            free(p);
            p = NULL;
            r = gpu_failed(gpu, "cuMemHostRegister", error, why);
        } else {
            p->registered = !error;
            if (error)
                gpu_failed(gpu, "cuMemHostRegister", error, why);
            p->next = table.first;
            table.first = p;
            gpu_hold(gpu);
        }
    }
    if (r == 0 && p) {
        p->users++;
        *pin = p;
    }
    pthread_mutex_unlock(&table.lock);
    return r;
}

void staging_unpin(struct pin *pin)
{
    if (!pin)
        return;
    pthread_mutex_lock(&table.lock);
    struct gpu *gpu = --pin->users == 0 ? pin->gpu : NULL;
    if (gpu) {
        if (pin->listed)
            pin_let_go(pin);
        free(pin);
    }
    pthread_mutex_unlock(&table.lock);
    if (gpu)
        gpu_close(gpu);
}

int staging_bounce(struct gpu *gpu, struct bounce *bounce, size_t bytes, struct text *why)
{
    size_t room = bounce->bytes ? bounce->bytes : 65536;
    if (bounce->bytes >= bytes)
        return 0;
    while (room < bytes && room < SIZE_MAX / 2)
        room *= 2;
    bool gave = bounce->pin != NULL;
    staging_bounce_free(bounce);
    /* who gives back is not told that the context has died */
    CUresult died = gave ? calm_died(gpu_api(gpu)) : CUDA_SUCCESS;
    if (died)
        return gpu_failed(gpu, "cuStreamIsCapturing", died, why);
    void *at = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) {
        text_add(why, "no memory for %zu bytes on the way to or from the device", room);
        return -ENOMEM;
    }
    gpu_near(gpu, at, room);
    int r = room <= BOUNCE_PINNED_MOST ? staging_pin(gpu, at, room, 0, &bounce->pin, why) : 0;
    if (r < 0) {
        munmap(at, room);
        return r;
    }
    bounce->at = at;
    bounce->bytes = room;
    return 0;
}

int staging_seen(struct gpu *gpu, const struct bounce *bounce, CUdeviceptr *at, struct text *why)
{
    if (!bounce->pin || !bounce->pin->registered)
        return -ENOTSUP;
    CUresult error = gpu_api(gpu)->cuMemHostGetDevicePointer_v2(at, bounce->at, 0);
    if (!error)
        return 0;
    return pin_harmless(error) ? -ENOTSUP
                               : gpu_failed(gpu, "cuMemHostGetDevicePointer", error, why);
}

void staging_bounce_free(struct bounce *bounce)
{
    staging_unpin(bounce->pin);
    if (bounce->at)
        munmap(bounce->at, bounce->bytes);
    *bounce = (struct bounce){ NULL, 0, NULL };
}
