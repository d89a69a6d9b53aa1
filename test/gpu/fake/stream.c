/* A stream is a thread that takes up one operation after another: waits for what it depends on, for
 * a random time, and does it. All dependencies, of the NULL stream and of events alike, are numbers
 * of operations in streams; only an event of another process is a word in memory that both map.
 * Once the context has died, operations end without doing anything. */
#include "fake/fake.h"

#include <fenv.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { STREAM_MAGIC = 0x5742, LOOK_NS = 20000000 };

static _Thread_local int own_mark;

void host_saw(struct CUstream_st *stream, uint64_t seq)
{
    if (fake.host.seen[stream->id] < seq)
        fake.host.seen[stream->id] = seq;
    if (seq >= stream->enqueued)
        order_join(&fake.host, &stream->order);
}

CUresult stream_wait(struct CUstream_st *stream, uint64_t seq)
{
    while (stream->done < seq)
        pthread_cond_wait(&fake.ended, &fake.lock);
    host_saw(stream, seq);
    return context_check(stream->context, false);
}

void context_drain(struct CUctx_st *context)
{
    if (!fake.drain)
        return;
    context_await(context);
    context->draining = &own_mark;
    for (int i = 0; i < fake.streams; i++) {
        struct CUstream_st *stream = fake.stream[i];
        uint64_t now = stream->enqueued;
        while (stream->context == context && stream->done < now)
            pthread_cond_wait(&fake.ended, &fake.lock);
    }
    context->draining = NULL;
    pthread_cond_broadcast(&fake.ended);
}

void context_await(const struct CUctx_st *context)
{
    while (context->draining && context->draining != &own_mark)
        pthread_cond_wait(&fake.ended, &fake.lock);
}

static void sleep_at_random(struct CUstream_st *stream)
{
    uint64_t us = fake_random(&stream->random) % (fake.delay_us + 1u);
    struct timespec t = { (time_t)(us / 1000000), (long)(us % 1000000) * 1000 };
    nanosleep(&t, NULL);
}

/* The other process's operation, or its end: what it had under way ends with it, as far as we shall
 * ever know. */
static void wait_for_share(struct event_share *share, uint64_t generation)
{
    uint64_t done;
    while ((done = atomic_load(&share->done)) < generation && fake_process_lives(share->pid)) {
        struct timespec t = { 0, LOOK_NS };
        syscall(SYS_futex, &share->done, FUTEX_WAIT, (uint32_t)done, &t, NULL, 0);
    }
}

static void wait_for_others(struct op *op)
{
    for (int i = 0; i < op->deps; i++)
        while (op->dep[i].stream->done < op->dep[i].seq)
            pthread_cond_wait(&fake.ended, &fake.lock);
}

static bool is_stale(const struct op *op)
{
    for (int i = 0; i < op->touches; i++) {
        const struct range *r = op->touch[i].range;
        if (r->kind == RANGE_OPENED && atomic_load(&r->memory->header->freed))
            return true;
    }
    return false;
}

static void run(struct op *op)
{
    if (op->kind == OP_COPY && op->lies)
        memset(op->to, 0, op->bytes);
    else if (op->kind == OP_COPY)
        memmove(op->to, op->from, op->bytes);
    else if (op->kind == OP_SET)
        memset(op->to, op->value, op->bytes);
    else if (op->kind == OP_KERNEL)
        op->error = ptx_run(op->launch);
}

static void take_up(struct CUstream_st *stream, struct op *op)
{
    wait_for_others(op);
    bool alive = !stream->context->error;
    pthread_mutex_unlock(&fake.lock);
    if (op->kind == OP_WAIT && op->share)
        wait_for_share(op->share, op->share_generation);
    if (fake.delay_us)
        sleep_at_random(stream);
    if (alive && is_stale(op))
        fake_misuse("stale mapping", "%s uses memory that process %d has freed meanwhile", op->call,
                    op->touch[0].range->exporter);
    if (alive && !op->error)
        run(op);
    pthread_mutex_lock(&fake.lock);
}

static void op_free(struct op *op)
{
    if (op->launch)
        free(op->launch->window);
    free(op->launch);
    free(op->told);
    free(op);
}

/* Who looks at the word and when is not seen here: the host is taken to know at once. */
static void tell(struct op *op)
{
    __atomic_store_n(op->word, op->number, __ATOMIC_RELEASE);
    order_join(&fake.host, op->told);
}

static bool word_is_awaited(const struct CUstream_st *stream, const struct range *range)
{
    for (const struct op *op = stream->first; op; op = op->next)
        if (op->kind == OP_WORD && (unsigned char *)op->word >= range->host
            && (unsigned char *)op->word < range->host + (range->end - range->begin))
            return true;
    return false;
}

void words_await(const struct range *range)
{
    for (int i = 0; i < fake.streams; i++)
        while (word_is_awaited(fake.stream[i], range))
            pthread_cond_wait(&fake.ended, &fake.lock);
}

static void finish(struct CUstream_st *stream, struct op *op)
{
    if (op->error)
        context_poison(stream->context, op->error);
    if (op->kind == OP_RECORD && op->event->stream == stream && op->event->seq == op->seq)
        op->event->time_ns = fake_now();
    if (op->kind == OP_WORD && !stream->context->error)
        tell(op);
    order_done(op);
    stream->first = op->next;
    if (!stream->first)
        stream->last = &stream->first;
    stream->done = op->seq;
    if (op->kind == OP_RECORD && op->share) {
        uint64_t done = atomic_load(&op->share->done);
        while (done < op->share_generation
               && !atomic_compare_exchange_strong(&op->share->done, &done, op->share_generation)) {
        }
        share_wake(op->share);
    }
    op_free(op);
    pthread_cond_broadcast(&fake.ended);
}

static bool hangs(const struct CUstream_st *stream)
{
    return stream->first->hangs && !stream->context->error;
}

static bool is_crowded_out(const struct CUstream_st *stream)
{
    return fake.crowd && stream->priority >= 0 && stream->first->kind == OP_KERNEL;
}

static void *work(void *arg)
{
    struct CUstream_st *stream = arg;
    fesetenv(FE_DFL_ENV);   /* a device has none of the modes of the thread that made this one */
    pthread_mutex_lock(&fake.lock);
    for (;;) {
        while (!stream->first || stream->hold || is_crowded_out(stream) || hangs(stream))
            pthread_cond_wait(&fake.ended, &fake.lock);
        struct op *op = stream->first;
        take_up(stream, op);
        finish(stream, op);
    }
    return NULL;
}

/* When all numbers are taken, one of a destroyed stream is used again, worker and
 * counts and all. */
struct CUstream_st *stream_make(struct CUctx_st *context, unsigned flags, int priority)
{
    struct CUstream_st *s = NULL;
    if (fake.streams == STREAMS_MOST) {
        for (int i = 0; i < STREAMS_MOST && !s; i++)
            if (fake.stream[i]->destroyed && fake.stream[i]->done == fake.stream[i]->enqueued)
                s = fake.stream[i];
        if (s) {
            s->destroyed = s->hold = false;
            s->flags = flags;
            s->priority = priority;
            s->context = context;
        }
        return s;
    }
    s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    *s = (struct CUstream_st){
        .magic = STREAM_MAGIC, .id = fake.streams, .flags = flags, .priority = priority,
        .context = context
    };
    s->random = fake.seed * 1000003u + (uint64_t)s->id;
    s->last = &s->first;
    fake.stream[fake.streams++] = s;
    if (pthread_create(&s->worker, NULL, work, s) != 0)
        abort();
    pthread_detach(s->worker);
    return s;
}

CUresult stream_of(CUstream handle, bool more, struct CUstream_st **stream)
{
    struct CUctx_st *context = NULL;
    CUresult error = context_current(&context, more);
    if (handle == NULL || handle == CU_STREAM_LEGACY) {
        if (error)
            return error;
        if (!context->null)
            context->null = stream_make(context, CU_STREAM_DEFAULT, 0);
        *stream = context->null;
        if (!*stream)
            return CUDA_ERROR_OUT_OF_MEMORY;
        return more ? capture_beside(context, true) : 0;
    }
    if (handle == CU_STREAM_PER_THREAD)
        return CUDA_ERROR_NOT_SUPPORTED;
    for (int i = 0; i < fake.streams; i++)
        if (fake.stream[i] == handle) {
            if (handle->destroyed) {
                fake_misuse("use after the end", "stream %d was destroyed", handle->id);
                return CUDA_ERROR_INVALID_HANDLE;
            }
            *stream = handle;
            if (more && !context)
                return error;                        /* no context is current */
            if (more && handle->context != context)
                return CUDA_ERROR_INVALID_HANDLE;
            return context == handle->context ? error : context_check(handle->context, more);
        }
    return CUDA_ERROR_INVALID_HANDLE;
}

void op_touch(struct op *op, struct range *range, uint64_t begin, uint64_t bytes, bool write)
{
    if (op->touches == OP_RANGES)
        abort();
    op->touch[op->touches++] = (struct touch){
        .range = range, .begin = begin, .end = begin + bytes, .write = write
    };
}

static void depend(struct op *op, struct CUstream_st *on)
{
    if (on->done < on->enqueued && op->deps < DEPS_MOST) {
        op->dep[op->deps].stream = on;
        op->dep[op->deps++].seq = on->enqueued;
    }
}

static bool is_blocking(const struct CUstream_st *s, const struct CUctx_st *context)
{
    return s->context == context && !(s->flags & CU_STREAM_NON_BLOCKING);
}

static void as_legacy(struct CUstream_st *stream, struct op *op)
{
    struct CUctx_st *context = stream->context;
    for (int i = 0; i < fake.streams; i++) {
        struct CUstream_st *other = fake.stream[i];
        if (other != stream && is_blocking(stream, context) && is_blocking(other, context)
            && (stream == context->null || other == context->null)) {
            depend(op, other);
            order_join(&stream->order, &other->order);
        }
    }
}

/* A copy to the host may begin at once, unless something stands before it: then what lies there now
 * is worth nothing. */
static void poison(const struct CUstream_st *stream, const struct op *op)
{
    if (fake.no_poison || op->kind != OP_COPY || op->deps || stream->done != stream->enqueued - 1
        || stream->context->error)
        return;
    for (int i = 0; i < op->touches; i++) {
        const struct touch *t = &op->touch[i];
        if (t->write && t->range->kind == RANGE_HOST)
            memset(op->to, 0xdb, op->bytes);
    }
}

void stream_enqueue(struct CUstream_st *stream, struct op *op)
{
    if (stream->capture) {                           /* it goes into the graph */
        op_free(op);
        return;
    }
    order_join(&stream->order, &fake.host);
    as_legacy(stream, op);
    op->seq = ++stream->enqueued;
    stream->order.seen[stream->id] = op->seq;
    for (int i = 0; i < op->touches; i++)
        order_touch(stream, op, &op->touch[i]);
    poison(stream, op);
    *stream->last = op;
    stream->last = &op->next;
    pthread_cond_broadcast(&fake.ended);
}

/* ---- the calls ------------------------------------------------------------------------------- */

enum { PRIORITY_GREATEST = -5 };

static CUresult create(CUstream *stream, unsigned flags, int priority)
{
    struct CUctx_st *context = NULL;
    CUresult error = context_current(&context, true);
    if (error)
        return error;
    if (flags > CU_STREAM_NON_BLOCKING)
        return CUDA_ERROR_INVALID_VALUE;
    if (priority < PRIORITY_GREATEST)
        priority = PRIORITY_GREATEST;
    *stream = stream_make(context, flags, priority);
    return *stream ? 0 : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuStreamCreate(CUstream *stream, unsigned flags)
{
    ENTER;
    return create(stream, flags, 0);
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    ENTER;
    struct CUctx_st *context = NULL;
    CUresult error = context_current(&context, false);
    *least = 0;
    *greatest = error ? 0 : PRIORITY_GREATEST;
    return error;
}

CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority)
{
    ENTER;
    return create(stream, flags, priority);
}

/* Returns at once; what is under way in the stream still is done. */
CUresult cuStreamDestroy_v2(CUstream handle)
{
    ENTER;
    struct CUstream_st *stream = NULL;
    if (!handle)
        return CUDA_ERROR_INVALID_HANDLE;
    CUresult error = stream_of(handle, false, &stream);
    if (stream)
        stream->destroyed = true;
    return error;
}

/* Of registered memory of the host only, which is all that we ask for. */
CUresult cuStreamWriteValue32_v2(CUstream handle, CUdeviceptr at, uint32_t value, unsigned flags)
{
    ENTER;
    struct CUstream_st *stream = NULL;
    CUresult error = stream_of(handle, true, &stream);
    if (error)
        return error;
    struct range *r = address_is_ours(at) ? range_of(at) : NULL;
    if (!r || r->kind != RANGE_HOST || at % sizeof value || flags)
        return CUDA_ERROR_INVALID_VALUE;
    struct op *op = op_new(OP_WORD, __func__);
    op->word = (uint32_t *)(void *)range_see(r, at);
    op->number = value;
    op->told = malloc(sizeof *op->told);
    if (!op->told)
        abort();
    struct order *told = op->told;
    bool kept = !stream->capture;
    stream_enqueue(stream, op);         /* the worker cannot take it up: we have the lock */
    if (kept)
        *told = stream->order;
    return 0;
}

CUresult cuStreamSynchronize(CUstream handle)
{
    ENTER;
    struct CUstream_st *stream = NULL;
    CUresult error = stream_of(handle, false, &stream);
    return error ? error : stream_wait(stream, stream->enqueued);
}

CUresult cuStreamQuery(CUstream handle)
{
    ENTER;
    struct CUstream_st *stream = NULL;
    CUresult error = stream_of(handle, false, &stream);
    if (error)
        return error;
    if (stream->done < stream->enqueued)
        return CUDA_ERROR_NOT_READY;
    host_saw(stream, stream->enqueued);
    return 0;
}

CUresult cuStreamIsCapturing(CUstream handle, int *status)
{
    ENTER;
    struct CUstream_st *stream = NULL;
    CUresult error = stream_of(handle, false, &stream);
    if (!error && stream == stream->context->null)
        error = capture_beside(stream->context, false);
    if (!error)
        *status = stream->capture;
    return error;
}

CUresult cuStreamGetCtx(CUstream handle, CUcontext *context)
{
    ENTER;
    struct CUstream_st *stream = NULL;
    CUresult error = stream_of(handle, false, &stream);
    if (!error)
        *context = stream->context;
    return error;
}

void fakeHold(CUstream handle, int hold)
{
    struct CUstream_st *stream = NULL;
    pthread_mutex_lock(&fake.lock);
    if (stream_of(handle, false, &stream) == 0)
        stream->hold = hold != 0;
    pthread_cond_broadcast(&fake.ended);
    pthread_mutex_unlock(&fake.lock);
}

void fakeCrowd(int crowd)
{
    pthread_mutex_lock(&fake.lock);
    fake.crowd = crowd != 0;
    pthread_cond_broadcast(&fake.ended);
    pthread_mutex_unlock(&fake.lock);
}

static unsigned taken(unsigned *figure)
{
    pthread_mutex_lock(&fake.lock);
    unsigned now = *figure;
    *figure = 0;
    pthread_mutex_unlock(&fake.lock);
    return now;
}

unsigned fakeGrid(void) { return taken(&fake.grid); }

unsigned fakeUnaligned(void) { return taken(&fake.unaligned); }

void fakeCapture(CUstream handle, int status)
{
    struct CUstream_st *stream = NULL;
    pthread_mutex_lock(&fake.lock);
    if (stream_of(handle, false, &stream) == 0)
        stream->capture = status;
    pthread_mutex_unlock(&fake.lock);
}
