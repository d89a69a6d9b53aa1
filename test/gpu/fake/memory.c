/* Memory of the devices: a memfd for each piece, seen by the fake through a mapping of its own, and
 * addresses out of one reserved stretch in which nothing can be read or written. An address that
 * becomes free is given out again at once, the lowest first, as it may happen with the real driver;
 * a buffer's id never comes again. */
#include "fake/fake.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAGIC = 0x7466616b, FILLED = 1 << 20 };
#define SPACE ((size_t)64 << 30)

static CUdeviceptr space;                            /* where the addresses begin */

bool address_is_ours(CUdeviceptr at)
{
    return space && at >= space && at - space < SPACE;
}

static struct memory *memory_map(int fd, size_t bytes)
{
    static struct memory all[RANGES_MOST];
    void *at = mmap(NULL, HEADER_BYTES + bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED)
        return NULL;
    for (int i = 0; i < RANGES_MOST; i++)
        if (!all[i].refs) {
            all[i] = (struct memory){
                .fd = fd, .bytes = bytes, .header = at,
                .bytes_at = (unsigned char *)at + HEADER_BYTES, .refs = 1
            };
            return &all[i];
        }
    munmap(at, HEADER_BYTES + bytes);
    return NULL;
}

struct memory *memory_make(size_t bytes, int device)
{
    int fd = memfd_create("fake-gpu", MFD_CLOEXEC);
    struct memory *m = fd >= 0 && ftruncate(fd, (off_t)(HEADER_BYTES + bytes)) == 0
        ? memory_map(fd, bytes)
        : NULL;
    if (!m) {
        if (fd >= 0)
            close(fd);
        return NULL;
    }
    m->header->magic = MAGIC;
    m->id = m->header->id = ++fake.ids;
    m->header->bytes = bytes;
    m->header->owner = fake.pid;
    m->header->device = m->device = fake.physical[device];
    memset(m->bytes_at, 0xcd, bytes < FILLED ? bytes : FILLED);     /* nobody may count on zeroes */
    return m;
}

struct memory *memory_adopt(int fd)
{
    struct stat s;
    if (fstat(fd, &s) != 0 || s.st_size <= HEADER_BYTES)
        return NULL;
    struct memory *m = memory_map(fd, (size_t)s.st_size - HEADER_BYTES);
    if (m && m->header->magic != MAGIC) {
        m->fd = -1;
        memory_drop(m);
        return NULL;
    }
    if (m) {
        m->id = m->header->id;
        m->device = m->header->device;
    }
    return m;
}

void memory_drop(struct memory *m)
{
    if (--m->refs)
        return;
    munmap(m->header, HEADER_BYTES + m->bytes);
    if (m->fd >= 0)
        close(m->fd);
}

/* The first range that has part of [begin, end). */
static const struct range *in_the_way(CUdeviceptr begin, CUdeviceptr end)
{
    for (int i = 0; i < RANGES_MOST; i++) {
        const struct range *r = &fake.range[i];
        if (r->kind != RANGE_FREE && r->kind != RANGE_MAPPED && r->begin < end && begin < r->end)
            return r;
    }
    return NULL;
}

static CUdeviceptr place(size_t bytes, size_t align)
{
    if (!space) {
        void *at = mmap(NULL, SPACE + GRANULE, PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (at == MAP_FAILED)
            return 0;
        space = ((CUdeviceptr)(uintptr_t)at + GRANULE - 1) & ~(CUdeviceptr)(GRANULE - 1);
    }
    CUdeviceptr at = space;
    const struct range *r;
    while ((r = in_the_way(at, at + bytes)) != NULL)
        at = (r->end + align - 1) & ~(CUdeviceptr)(align - 1);
    return at + bytes <= space + SPACE ? at : 0;
}

struct range *range_take(enum range_kind kind, size_t bytes, size_t align)
{
    CUdeviceptr at = kind == RANGE_MAPPED ? 0 : place(bytes, align);
    for (int i = 0; (at || kind == RANGE_MAPPED) && i < RANGES_MOST; i++) {
        struct range *r = &fake.range[i];
        if (r->kind != RANGE_FREE)
            continue;
        struct access *accesses = r->accesses;
        int room = r->accesses_room;
        *r = (struct range){
            .kind = kind, .begin = at, .end = at + bytes, .id = ++fake.ids,
            .accesses = accesses, .accesses_room = room
        };
        return r;
    }
    return NULL;
}

void range_give(struct range *r)
{
    if (r->memory)
        memory_drop(r->memory);
    r->memory = NULL;
    r->kind = RANGE_FREE;
    r->accesses_n = 0;
}

struct range *range_of(CUdeviceptr at)
{
    struct range *found = NULL;
    for (int i = 0; i < RANGES_MOST; i++) {
        struct range *r = &fake.range[i];
        if (r->kind != RANGE_FREE && at >= r->begin && at < r->end
            && (!found || r->kind == RANGE_MAPPED))
            found = r;
    }
    return found;
}

unsigned char *range_see(const struct range *r, CUdeviceptr at)
{
    if (r->kind == RANGE_HOST)
        return r->host + (at - r->begin);
    return r->memory ? r->memory->bytes_at + r->offset + (at - r->begin) : NULL;
}

CUresult range_idle(struct range *r, const char *call)
{
    CUresult error = 0;
    (void)call;
    /* host_saw may have other ranges forget, this one only when touched */
    for (int i = 0; i < r->accesses_n; i++) {
        struct access a = r->accesses[i];
        struct CUstream_st *stream = fake.stream[a.stream];
        if (stream->done < a.op) {
            CUresult e = stream_wait(stream, a.op);
            error = error ? error : e;
        }
    }
    return error;
}

/* ---- cuMemAlloc ------------------------------------------------------------------------------ */

CUresult cuMemAlloc_v2(CUdeviceptr *at, size_t bytes)
{
    ENTER;
    struct CUctx_st *context = NULL;
    CUresult error = context_current(&context, true);
    if (error)
        return error;
    if (!bytes)
        return CUDA_ERROR_INVALID_VALUE;
    if (bytes > SPACE / 2)
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct range *r = range_take(RANGE_ALLOC, bytes, ALIGN);
    if (r)
        r->memory = memory_make(bytes, context->device);
    if (!r || !r->memory) {
        if (r)
            range_give(r);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    r->context = context;
    *at = r->begin;
    return 0;
}

/* Waits for this process's work, as the real one does; that of others it cannot. */
CUresult cuMemFree_v2(CUdeviceptr at)
{
    ENTER;
    struct CUctx_st *context = NULL;
    CUresult error = context_seen(&context);
    if (!at)
        return error;
    struct range *r = range_of(at);
    if (!r || r->kind != RANGE_ALLOC || r->begin != at)
        return error ? error : CUDA_ERROR_INVALID_VALUE;
    struct header *h = r->memory->header;
    for (int i = 0; i < OPENS_MOST; i++) {
        int pid = atomic_load(&h->open[i].pid);
        if (pid && atomic_load(&h->open[i].count) > 0 && fake_process_lives(pid))
            fake_misuse("free before close", "%zu bytes are freed that process %d has open",
                        r->memory->bytes, pid);
    }
    CUresult late = range_idle(r, __func__);
    context_drain(context);
    atomic_store(&h->freed, 1);
    range_give(r);
    return error ? error : late;
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *bytes, CUdeviceptr at)
{
    ENTER;
    struct CUctx_st *context = NULL;
    CUresult error = context_current(&context, false);
    if (error)
        return error;
    struct range *r = range_of(at);
    if (!r || r->kind == RANGE_RESERVED)
        return CUDA_ERROR_NOT_FOUND;
    if (base)
        *base = r->begin;
    if (bytes)
        *bytes = r->end - r->begin;
    return 0;
}

void *fakePeek(CUdeviceptr at)
{
    pthread_mutex_lock(&fake.lock);
    const struct range *r = range_of(at);
    void *seen = r ? range_see(r, at) : NULL;
    pthread_mutex_unlock(&fake.lock);
    return seen;
}
