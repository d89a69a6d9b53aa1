/* The numbers are of this process and this page: what an earlier owner has left in a mirror of that
 * memory is no proof. They are floats from 1 to 2, so that a fold of one input gives them back bit
 * for bit, by a kernel that is loaded anyway. The stream has the greatest priority: a device that
 * is full of the program's kernels is no liar. A device that does not answer in time keeps its
 * stream and the memory that it writes: they are lost until the process ends. Operations go on by
 * the host. Who frees or closes memory in that context waits as long as the driver does. To
 * unregister host memory, a driver waits for all that is under way in the context. So what a proof
 * has registered stays so until the world's end. */
#include "gpu/proof.h"

#include "base/clock.h"
#include "base/text.h"
#include "gpu/calm.h"
#include "gpu/device_memory.h"
#include "gpu/kernels.h"
#include "gpu/topology.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { FAR_NOT_ASKED = -1, PAGES = 16, ROWS = 64, NUMBERS = PROOF_BYTES / 4 };
#define PATIENCE_NS UINT64_C(5000000000)

/* Host memory that a proof has registered with a GPU. */
struct proof_host { struct proof_host *next; struct gpu *gpu; char *at; };

struct proofs {
    pthread_mutex_t lock;               /* over all that follows */
    struct proof_host *ended;           /* of proofs that are over */
    struct { int device; struct driver_pointer pointer; uint64_t nonce; } page[PAGES];
    /* found: as proof_known; far: 1 or 0, FAR_NOT_ASKED */
    struct pair {
        int reader, found, far;
        unsigned char owner[16];
        char words[PROOF_WORDS];
    } row[ROWS];
    int pages, rows;
};

static struct proofs *proofs_of(struct world *world)
{
    pthread_mutex_lock(&world->lock);
    if (!world->proofs && (world->proofs = calloc(1, sizeof *world->proofs)))
        pthread_mutex_init(&world->proofs->lock, NULL);
    struct proofs *p = world->proofs;
    pthread_mutex_unlock(&world->lock);
    return p;
}

static uint32_t number(uint64_t nonce, uint32_t i)
{
    return UINT32_C(0x3f800000) | (uint32_t)(text_hash(&i, sizeof i, nonce) & 0x7fffff);
}

/* ---- the owner ------------------------------------------------------------------------------- */

static int page_write(struct gpu *gpu, CUdeviceptr at, uint64_t nonce, struct text *why)
{
    const struct cuda_api *call = gpu_api(gpu);
    uint32_t numbers[NUMBERS];
    CUstream stream = NULL;
    for (uint32_t i = 0; i < NUMBERS; i++)
        numbers[i] = number(nonce, i);
    int r = gpu_enter(gpu, why);
    if (r < 0)
        return r;
    const char *function = "cuStreamCreate";
    CUresult error = call->cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    if (!error) {
        function = "cuMemcpyHtoDAsync";
        error = call->cuMemcpyHtoDAsync_v2(at, numbers, sizeof numbers, stream);
        if (!error) {
            function = "cuStreamSynchronize";
            error = call->cuStreamSynchronize(stream);
        }
        call->cuStreamDestroy_v2(stream);
    }
    gpu_leave(gpu);
    return error ? gpu_failed(gpu, function, error, why) : 0;
}

static bool page_find(struct proofs *p, int device, struct driver_pointer *page, uint64_t *nonce)
{
    bool found = false;
    pthread_mutex_lock(&p->lock);
    for (int i = 0; i < p->pages && !found; i++)
        if (p->page[i].device == device) {
            *page = p->page[i].pointer;
            *nonce = p->page[i].nonce;
            found = true;
        }
    pthread_mutex_unlock(&p->lock);
    return found;
}

int proof_page(struct world *world, struct gpu *gpu, struct driver_pointer *page, uint64_t *nonce,
               struct text *why)
{
    struct proofs *p = proofs_of(world);
    void *at = NULL;
    if (!p)
        return -ENOMEM;
    if (page_find(p, gpu_ordinal(gpu), page, nonce))
        return 0;
    int r = device_memory_alloc(world, PROOF_BYTES, gpu_ordinal(gpu), 0, &at, why);
    if (r == 0)
        r = driver_pointer(at, page, why);
    uint64_t now[2] = { clock_ns(), (uint64_t)getpid() };
    *nonce = text_hash(now, sizeof now, (uint64_t)(uintptr_t)at);
    if (r == 0)
        r = page_write(gpu, (CUdeviceptr)(uintptr_t)at, *nonce, why);
    pthread_mutex_lock(&p->lock);
    if (r == 0 && p->pages < PAGES) {
        p->page[p->pages].device = gpu_ordinal(gpu);
        p->page[p->pages].pointer = *page;
        p->page[p->pages++].nonce = *nonce;
    }
    pthread_mutex_unlock(&p->lock);
    return r;
}

/* ---- the reader ------------------------------------------------------------------------------ */

/* Under the lock. NULL: there is no room for one more. */
static struct pair *pair_of(struct proofs *p, const struct gpu *gpu, const unsigned char uuid[16])
{
    for (int i = 0; i < p->rows; i++)
        if (p->row[i].reader == gpu_ordinal(gpu) && memcmp(p->row[i].owner, uuid, 16) == 0)
            return &p->row[i];
    if (p->rows == ROWS)
        return NULL;
    struct pair *pair = &p->row[p->rows++];
    *pair = (struct pair){ .reader = gpu_ordinal(gpu), .far = FAR_NOT_ASKED };
    memcpy(pair->owner, uuid, sizeof pair->owner);
    return pair;
}

int proof_known(struct world *world, const struct gpu *gpu, const unsigned char uuid[16],
                struct text *why)
{
    struct proofs *p = proofs_of(world);
    if (memcmp(gpu_about(gpu)->uuid.bytes, uuid, 16) == 0)
        return 1;
    if (!p)
        return 0;
    pthread_mutex_lock(&p->lock);
    const struct pair *pair = pair_of(p, gpu, uuid);
    int found = pair ? pair->found : 0;
    if (found < 0)
        text_add(why, "%s", pair->words);
    pthread_mutex_unlock(&p->lock);
    return found;
}

/* An owner that this process does not see cannot be asked about, and counts as near. */
static bool ask_far(const struct gpu *gpu, const unsigned char uuid[16])
{
    const struct cuda_api *call = gpu_api(gpu);
    const struct driver *driver;
    struct driver_device owner;
    if (driver_open(&driver, NULL) < 0)
        return false;
    for (int i = 0; i < driver->devices; i++) {
        CUdevice me, it;
        if (driver_device(driver, i, &owner, NULL) < 0 || memcmp(owner.uuid.bytes, uuid, 16) != 0)
            continue;
        return !call->cuDeviceGet(&me, gpu_ordinal(gpu)) && !call->cuDeviceGet(&it, i)
            && topology_far(call, me, gpu_about(gpu), it, &owner);
    }
    return false;
}

bool proof_far(struct world *world, const struct gpu *gpu, const unsigned char uuid[16])
{
    struct proofs *p = proofs_of(world);
    if (!p || memcmp(gpu_about(gpu)->uuid.bytes, uuid, 16) == 0)
        return false;
    pthread_mutex_lock(&p->lock);
    struct pair *pair = pair_of(p, gpu, uuid);
    if (pair && pair->far == FAR_NOT_ASKED)
        pair->far = ask_far(gpu, uuid);
    bool far = pair && pair->far == 1;
    pthread_mutex_unlock(&p->lock);
    return far;
}

static int learn(struct world *world, const struct gpu *gpu, const unsigned char uuid[16],
                 const char *words, struct text *why)
{
    struct proofs *p = proofs_of(world);
    int found = words ? -ENOTSUP : 1;
    if (words)
        text_add(why, "%s", words);
    if (!p)
        return found;
    pthread_mutex_lock(&p->lock);
    struct pair *pair = pair_of(p, gpu, uuid);
    if (pair) {
        struct text kept = TEXT_IN(pair->words);
        pair->found = found;
        text_clear(&kept);
        text_add(&kept, "%s", words ? words : "");
    }
    pthread_mutex_unlock(&p->lock);
    return found;
}

/* The kernel writes into host memory, so that nothing on a device is lost with it. */
static CUresult enqueue(const struct cuda_api *call, struct proof *q, CUdeviceptr at,
                        const char **function, struct text *why)
{
    CUdeviceptr host = 0;
    *function = "cuMemHostGetDevicePointer";
    CUresult error = call->cuMemHostGetDevicePointer_v2(&host, q->host->at, 0);
    if (error)
        return error;
    *function = "cuMemcpyDtoHAsync";
    error = call->cuMemcpyDtoHAsync_v2(q->host->at, at, PROOF_BYTES, q->stream);
    struct kernel_fold fold = {
        .out = host + PROOF_BYTES, .count = NUMBERS, .inputs = 1, .divisor = 1, .in = { at }
    };
    if (error
        || !kernels_fold(gpu_kernels(q->gpu), call, TUTTI_F32, TUTTI_SUM, &fold, q->stream, why))
        return error;
    *function = "cuLaunchKernel";
    return CUDA_ERROR_UNKNOWN;
}

static void host_end(struct proof_host *host)
{
    if (gpu_enter_to_give(host->gpu)) {
        gpu_api(host->gpu)->cuMemHostUnregister(host->at);
        gpu_leave(host->gpu);
    }
    munmap(host->at, 2 * PROOF_BYTES);
    gpu_close(host->gpu);
    free(host);
}

static void give_up(struct world *world, struct proof *q)
{
    struct proofs *p = proofs_of(world);
    if (q->stream && gpu_enter_to_give(q->gpu)) {
        gpu_api(q->gpu)->cuStreamDestroy_v2(q->stream);
        gpu_leave(q->gpu);
    }
    if (p) {
        pthread_mutex_lock(&p->lock);
        q->host->next = p->ended;
        p->ended = q->host;
        pthread_mutex_unlock(&p->lock);
    } else
        host_end(q->host);
    *q = (struct proof){ .gpu = NULL };
}

/* The device still reads, or will: the memory and the stream stay until the process ends. */
static void lose(struct proof *q)
{
    gpu_close(q->host->gpu);
    free(q->host);
    *q = (struct proof){ .gpu = NULL };
}

static struct proof_host *host_new(struct gpu *gpu)
{
    struct proof_host *host = malloc(sizeof *host);
    void *at = mmap(NULL, 2 * PROOF_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
                    0);
    if (!host || at == MAP_FAILED) {
        if (at != MAP_FAILED)
            munmap(at, 2 * PROOF_BYTES);
        free(host);
        return NULL;
    }
    gpu_hold(gpu);
    *host = (struct proof_host){ NULL, gpu, at };
    memset(at, 0xee, 2 * PROOF_BYTES);
    return host;
}

int proof_ask(struct world *world, struct gpu *gpu, struct proof *q, CUdeviceptr at,
              struct text *why)
{
    const struct cuda_api *call = gpu_api(gpu);
    const char *function = "cuMemHostRegister";
    struct proof_host *host = host_new(gpu);
    if (!host)
        return -ENOMEM;
    *q = (struct proof){ .gpu = gpu, .host = host, .began = clock_ns() };
    int r = gpu_enter(gpu, why);
    if (r < 0) {
        give_up(world, q);
        return r;
    }
    CUresult error = call->cuMemHostRegister_v2(host->at, 2 * PROOF_BYTES,
                                                CU_MEMHOSTREGISTER_PORTABLE
                                                    | CU_MEMHOSTREGISTER_DEVICEMAP);
    int least = 0, greatest = 0;
    if (!error) {
        function = "cuStreamCreateWithPriority";
        error = call->cuCtxGetStreamPriorityRange(&least, &greatest);
    }
    if (!error)
        error = call->cuStreamCreateWithPriority(&q->stream, CU_STREAM_NON_BLOCKING, greatest);
    if (!error)
        error = enqueue(call, q, at, &function, why);
    gpu_leave(gpu);
    if (!error)
        return 0;
    r = gpu_failed(gpu, function, error, why);
    give_up(world, q);
    return r;
}

static bool is_right(const char *got, uint64_t nonce)
{
    for (uint32_t i = 0; i < NUMBERS; i++) {
        uint32_t expected = number(nonce, i);
        if (memcmp(got + 4 * i, &expected, sizeof expected) != 0)
            return false;
    }
    return true;
}

int proof_look(struct world *world, struct proof *q, const unsigned char uuid[16], uint64_t nonce,
               bool *lost, struct text *why)
{
    struct gpu *gpu = q->gpu;
    const struct cuda_api *call = gpu_api(gpu);
    CUresult error = calm_begin(call);
    if (!error) {
        error = call->cuStreamQuery(q->stream);
        calm_end();
    }
    *lost = false;
    if (error == CUDA_ERROR_NOT_READY) {
        if (clock_ns() - q->began < PATIENCE_NS)
            return 0;
        *lost = true;
        lose(q);
        return learn(world, gpu, uuid,
                     "this GPU does not end reading it (an IOMMU or ACS between the two?); "
                     "`tutti doctor` shows all pairs",
                     why);
    }
    if (error) {
        int r = gpu_failed(gpu, "cuStreamQuery", error, why);
        give_up(world, q);
        return r;
    }
    bool copied = is_right(q->host->at, nonce);
    bool folded = is_right(q->host->at + PROOF_BYTES, nonce);
    give_up(world, q);
    return learn(world, gpu, uuid,
                 copied && folded ? NULL
                     : copied
                     ? "kernels of this GPU read other bytes there (an IOMMU or ACS between the "
                       "two?); `tutti doctor` shows all pairs"
                     : "this GPU reads other bytes there (an IOMMU or ACS between the two?); "
                       "`tutti doctor` shows all pairs",
                 why);
}

bool proof_drop(struct world *world, struct proof *q)
{
    const struct cuda_api *call = q->gpu ? gpu_api(q->gpu) : NULL;
    if (!call)
        return true;
    bool idle = calm_begin(call) == 0;
    if (idle) {
        idle = call->cuStreamQuery(q->stream) != CUDA_ERROR_NOT_READY;
        calm_end();
    }
    if (idle)
        give_up(world, q);
    else
        lose(q);
    return idle;
}

void proof_end(struct world *world)
{
    if (!world->proofs)
        return;
    for (struct proof_host *host = world->proofs->ended, *next; host; host = next) {
        next = host->next;
        host_end(host);
    }
    pthread_mutex_destroy(&world->proofs->lock);
    free(world->proofs);
    world->proofs = NULL;
}
