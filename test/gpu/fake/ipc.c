/* Memory of cuMemAlloc in other processes. The handle names a descriptor of the exporter, which the
 * importer opens through /proc; the inode says whether it still is that memory. Who has it open
 * stands in the memory's header. */
#include "fake/fake.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HANDLE_MAGIC = 0x1bc };

struct handle { uint32_t magic; int pid, fd, device; uint64_t inode, id, begin, end; };
_Static_assert(sizeof(struct handle) <= sizeof(CUipcMemHandle), "fits");

CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr at)
{
    ENTER;
    struct stat s;
    struct CUctx_st *context = NULL;
    CUresult error = context_current(&context, false);
    if (error)
        return error;
    struct range *r = range_of(at);
    if (!r || r->kind != RANGE_ALLOC)
        return CUDA_ERROR_INVALID_VALUE;
    if (r->begin != at)
        fake_misuse("wrong base",
                    "the handle of an address %llu bytes into its buffer; importers get the base",
                    at - r->begin);
    if (fstat(r->memory->fd, &s) != 0)
        return CUDA_ERROR_MAP_FAILED;
    struct handle h = {
        HANDLE_MAGIC, fake.pid, r->memory->fd, r->memory->device, s.st_ino,
        r->memory->id, r->begin, r->end
    };
    memset(handle, 0, sizeof *handle);
    memcpy(handle, &h, sizeof h);
    return 0;
}

/* The importer's entry in the header: its own, or one of a process that is no more, or a
 * free one. */
static bool count_in(struct header *h)
{
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < OPENS_MOST; i++) {
            int pid = atomic_load(&h->open[i].pid);
            bool takes = round == 1 && (!pid || !fake_process_lives(pid));
            if (pid == fake.pid
                || (takes && atomic_compare_exchange_strong(&h->open[i].pid, &pid, fake.pid))) {
                if (pid != fake.pid)
                    atomic_store(&h->open[i].count, 0);
                atomic_fetch_add(&h->open[i].count, 1);
                return true;
            }
        }
    return false;
}

static void count_out(struct header *h)
{
    for (int i = 0; i < OPENS_MOST; i++)
        if (atomic_load(&h->open[i].pid) == fake.pid && atomic_fetch_sub(&h->open[i].count, 1) == 1)
            atomic_store(&h->open[i].pid, 0);
}

/* Already open here: the same address again. What else of that exporter lies at these of its
 * addresses is in the way. */
static CUresult look_for(const struct handle *h, struct CUctx_st *context, struct range **found)
{
    for (int i = 0; i < RANGES_MOST; i++) {
        struct range *r = &fake.range[i];
        if (r->kind != RANGE_OPENED || r->exporter != h->pid)
            continue;
        bool same = r->memory->id == h->id;
        if (r->context != context && r->memory->device == h->device)
            return CUDA_ERROR_INVALID_CONTEXT;  /* one context for each device of another process */
        if (same)
            *found = r;
        else if (r->exporter_begin < h->end && h->begin < r->exporter_end)
            return CUDA_ERROR_ALREADY_MAPPED;
    }
    return 0;
}

static struct memory *memory_open(const struct handle *h)
{
    struct stat s;
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", h->pid, h->fd);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    struct memory *m = fd >= 0 && fstat(fd, &s) == 0 && s.st_ino == h->inode ? memory_adopt(fd)
                                                                             : NULL;
    if (!m && fd >= 0)
        close(fd);
    return m;
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *at, CUipcMemHandle handle, unsigned flags)
{
    ENTER;
    struct handle h;
    struct range *r = NULL;
    struct CUctx_st *context = NULL;
    CUresult error = context_current(&context, true);
    if (error)
        return error;
    memcpy(&h, &handle, sizeof h);
    if (flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS || h.magic != HANDLE_MAGIC)
        return CUDA_ERROR_INVALID_VALUE;
    if (h.pid == fake.pid) {
        fake_misuse("opened in the exporter",
                    "the handle of %llu bytes that this process has allocated",
                    (unsigned long long)(h.end - h.begin));
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    error = look_for(&h, context, &r);
    if (error)
        return error;
    if (!r) {
        struct memory *m = memory_open(&h);
        if (!m || atomic_load(&m->header->freed)) {
            if (m)
                memory_drop(m);
            return CUDA_ERROR_INVALID_VALUE;
        }
        r = range_take(RANGE_OPENED, m->bytes, GRANULE);
        if (!r) {
            memory_drop(m);
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        r->memory = m;
        r->context = context;
        r->exporter = h.pid;
        r->exporter_begin = h.begin;
        r->exporter_end = h.end;
    }
    r->opens++;
    if (!count_in(r->memory->header))
        return CUDA_ERROR_OUT_OF_MEMORY;
    *at = r->begin;
    return 0;
}

CUresult cuIpcCloseMemHandle(CUdeviceptr at)
{
    ENTER;
    struct CUctx_st *context = NULL;
    CUresult error = context_seen(&context);
    struct range *r = range_of(at);
    if (!r || r->kind != RANGE_OPENED || r->begin != at)
        return error ? error : CUDA_ERROR_INVALID_VALUE;
    if (!error && r->opens == 1 && order_busy(r, 0, UINT64_MAX, true))
        fake_misuse("closed too early", "work is still under way in memory of process %d",
                    r->exporter);
    count_out(r->memory->header);
    if (--r->opens == 0) {
        range_idle(r, __func__);
        context_drain(context);
        range_give(r);
    }
    return error;
}
