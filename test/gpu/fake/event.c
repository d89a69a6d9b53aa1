/* Events, and those that other processes have, too: a page that both map holds how many records
 * have been made and how many have ended. A wait is for the newest record there was at the call,
 * whoever made it. */
#include "fake/fake.h"

#include <stdio.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { EVENT_MAGIC = 0xe7e47, EVENTS_MOST = 4096 };

static struct CUevent_st *events[EVENTS_MOST];
static int events_n;

struct event_handle { uint64_t magic; int pid, fd; uint64_t inode; };
_Static_assert(sizeof(struct event_handle) <= sizeof(CUipcEventHandle), "fits");

static struct CUevent_st *event_make(struct CUctx_st *context, unsigned flags)
{
    struct CUevent_st *e = events_n < EVENTS_MOST ? calloc(1, sizeof *e) : NULL;
    if (!e)
        return NULL;
    *e = (struct CUevent_st){
        .magic = EVENT_MAGIC, .flags = flags, .context = context, .share_fd = -1
    };
    events[events_n++] = e;
    return e;
}

static CUresult event_of(CUevent event)
{
    for (int i = 0; i < events_n; i++)
        if (events[i] == event) {
            if (event->destroyed)
                fake_misuse("use after the end", "an event was destroyed");
            return event->destroyed ? CUDA_ERROR_INVALID_HANDLE : 0;
        }
    return CUDA_ERROR_INVALID_HANDLE;
}

static bool share_map(struct CUevent_st *e, int fd)
{
    void *at = fd < 0 ? MAP_FAILED
                      : mmap(NULL, sizeof *e->share, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) {
        if (fd >= 0)
            close(fd);
        return false;
    }
    e->share = at;
    e->share_fd = fd;
    return true;
}

CUresult cuEventCreate(CUevent *event, unsigned flags)
{
    ENTER;
    struct CUctx_st *context = NULL;
    CUresult error = context_current(&context, true);
    if (error)
        return error;
    if (flags > 7 || ((flags & CU_EVENT_INTERPROCESS) && !(flags & CU_EVENT_DISABLE_TIMING)))
        return CUDA_ERROR_INVALID_VALUE;
    struct CUevent_st *e = event_make(context, flags);
    if (!e)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (flags & CU_EVENT_INTERPROCESS) {
        int fd = memfd_create("fake-event", MFD_CLOEXEC);
        if (fd < 0 || ftruncate(fd, sizeof *e->share) != 0 || !share_map(e, fd))
            return CUDA_ERROR_OUT_OF_MEMORY;
        e->share->pid = fake.pid;
    }
    *event = e;
    return 0;
}

/* Returns at once; waits for it that are under way go on. The shared page stays mapped,
 * for them. */
CUresult cuEventDestroy_v2(CUevent event)
{
    ENTER;
    CUresult error = event_of(event);
    if (error)
        return error;
    event->destroyed = true;
    if (event->share_fd >= 0)
        close(event->share_fd);
    return 0;
}

CUresult cuEventRecord(CUevent event, CUstream handle)
{
    ENTER;
    struct CUstream_st *stream = NULL;
    CUresult error = event_of(event);
    if (!error)
        error = stream_of(handle, true, &stream);
    if (error)
        return error;
    if (event->context != stream->context)
        return CUDA_ERROR_INVALID_HANDLE;
    struct op *op = op_new(OP_RECORD, __func__);
    op->event = event;
    event->recorded = true;
    event->stream = stream;
    event->seq = stream->enqueued + 1;
    event->time_ns = 0;
    stream_enqueue(stream, op);
    event->order = stream->order;
    /* the worker cannot have ended it yet: we have the lock */
    if (event->share && !stream->capture) {
        op->share = event->share;
        order_export(event->share, stream, op);
        op->share_generation = event->generation = atomic_fetch_add(&event->share->recorded, 1) + 1;
    }
    return 0;
}

CUresult cuStreamWaitEvent(CUstream handle, CUevent event, unsigned flags)
{
    ENTER;
    struct CUstream_st *stream = NULL;
    CUresult error = event_of(event);
    if (!error)
        error = stream_of(handle, false, &stream);
    if (error)
        return error;
    if (flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (!event->recorded && !event->share)
        return 0;
    struct op *op = op_new(OP_WAIT, __func__);
    if (event->share) {
        op->share = event->share;
        op->share_generation = atomic_load(&event->share->recorded);
        if (op->share_generation)
            order_import(&stream->order, event->share);
    }
    if (event->recorded && (!event->share || event->share->pid == fake.pid)) {
        op->dep[op->deps].stream = event->stream;
        op->dep[op->deps++].seq = event->seq;
        order_join(&stream->order, &event->order);
    }
    stream_enqueue(stream, op);
    return 0;
}

static bool has_ended(const struct CUevent_st *e)
{
    if (e->share)
        return atomic_load(&e->share->done) >= atomic_load(&e->share->recorded)
            || !fake_process_lives(e->share->pid);
    return !e->recorded || e->stream->done >= e->seq;
}

static CUresult event_result(struct CUevent_st *e)
{
    if (e->share && atomic_load(&e->share->recorded))
        order_import(&fake.host, e->share);
    if (e->recorded) {
        order_join(&fake.host, &e->order);
        return context_check(e->stream->context, false);
    }
    return 0;
}

CUresult cuEventQuery(CUevent event)
{
    ENTER;
    CUresult error = event_of(event);
    if (error)
        return error;
    return has_ended(event) ? event_result(event) : CUDA_ERROR_NOT_READY;
}

CUresult cuEventSynchronize(CUevent event)
{
    ENTER;
    CUresult error = event_of(event);
    if (error)
        return error;
    while (!has_ended(event)) {
        /* another process ends it: nobody signals us */
        if (event->share && event->share->pid != fake.pid) {
            pthread_mutex_unlock(&fake.lock);
            usleep(50);
            pthread_mutex_lock(&fake.lock);
        } else {
            pthread_cond_wait(&fake.ended, &fake.lock);
        }
    }
    return event_result(event);
}

CUresult cuEventElapsedTime(float *ms, CUevent begin, CUevent end)
{
    ENTER;
    CUresult error = event_of(begin);
    if (!error)
        error = event_of(end);
    if (error)
        return error;
    if (!begin->recorded || !end->recorded
        || ((begin->flags | end->flags) & CU_EVENT_DISABLE_TIMING))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!has_ended(begin) || !has_ended(end))
        return CUDA_ERROR_NOT_READY;
    *ms = (float)((double)(int64_t)(end->time_ns - begin->time_ns) / 1e6);
    return 0;
}

CUresult cuIpcGetEventHandle(CUipcEventHandle *handle, CUevent event)
{
    ENTER;
    struct stat s;
    CUresult error = event_of(event);
    if (error)
        return error;
    if (!event->share || event->imported)
        return CUDA_ERROR_INVALID_VALUE;
    if (fstat(event->share_fd, &s) != 0)
        return CUDA_ERROR_MAP_FAILED;
    struct event_handle h = { EVENT_MAGIC, fake.pid, event->share_fd, s.st_ino };
    memset(handle, 0, sizeof *handle);
    memcpy(handle, &h, sizeof h);
    return 0;
}

CUresult cuIpcOpenEventHandle(CUevent *event, CUipcEventHandle handle)
{
    ENTER;
    struct event_handle h;
    struct stat s;
    char path[64];
    struct CUctx_st *context = NULL;
    CUresult error = context_current(&context, true);
    if (error)
        return error;
    memcpy(&h, &handle, sizeof h);
    if (h.magic != EVENT_MAGIC)
        return CUDA_ERROR_INVALID_HANDLE;
    if (h.pid == fake.pid) {
        fake_misuse("opened in the exporter", "the handle of an event of this process");
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    snprintf(path, sizeof path, "/proc/%d/fd/%d", h.pid, h.fd);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &s) != 0 || s.st_ino != h.inode) {
        if (fd >= 0)
            close(fd);
        return CUDA_ERROR_INVALID_HANDLE;
    }
    struct CUevent_st *e = event_make(context, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING);
    if (!e || !share_map(e, fd))
        return CUDA_ERROR_OUT_OF_MEMORY;
    e->imported = true;
    *event = e;
    return 0;
}
