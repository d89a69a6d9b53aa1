/* Each transfer tries to make a ring, which the system grants or refuses at once; else it uses four
 * threads at most. A disk that needs more requests at a time needs a ring. A thread takes the
 * oldest piece; ends are taken in any order. A submission that fails half-way becomes an end, so no
 * piece is lost.
 * No thread can sleep on a ring and on peers' words at once. So a listener thread turns the ring's
 * ends into a word; it is made when a caller has to wait for the first time.
 * Cost: a ring in some 30 us, or the threads. */
#include "os/transfer.h"

#include "base/error.h"
#include "base/knob.h"
#include "os/futex.h"
#include "os/kept.h"
#include "os/thread.h"
#include "os/uring.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { THREADS_MOST = 4, AT_ONCE = 1 << 30, DEAF_SLICE = 1000000 };

struct transfer_job {
    struct transfer_piece piece;
    unsigned tag;
    int64_t result;
    struct transfer_job *next;
};

struct transfer {
    struct uring *ring;                /* NULL: threads */
    shared64 ends;                     /* +1 by workers or listener; a futex */
    struct kept event;                 /* the ring's, read by `listener`; no fd: none */
    pthread_t listener;
    shared32 closing;                  /* 1: the listener ends; by transfer_close */
    unsigned depth, under_way;
    pthread_mutex_t lock;
    pthread_cond_t given;              /* a piece was submitted, or workers are to end */
    pthread_cond_t ended;
    pthread_t thread[THREADS_MOST];
    int threads;
    bool over;
    struct transfer_job jobs[TRANSFER_DEPTH], *unused, *first, **last, *done;
};

static int64_t do_it(const struct transfer_piece *piece)
{
    size_t bytes = piece->bytes < AT_ONCE ? piece->bytes : AT_ONCE;
    ssize_t r;
    do {
        if (piece->kind == TRANSFER_SYNC)
            r = fsync(piece->fd);
        else if (piece->kind == TRANSFER_READ)
            r = pread(piece->fd, piece->at, bytes, (off_t)piece->offset);
        else
            r = pwrite(piece->fd, piece->at, bytes, (off_t)piece->offset);
    } while (r < 0 && errno == EINTR);
    return r < 0 ? -errno : r;
}

static void announce(struct transfer *t)
{
    fetch_add64(&t->ends, 1);
    futex_wake(low_half(&t->ends), INT_MAX);
}

static void *work(void *arg)
{
    struct transfer *t = arg;
    pthread_mutex_lock(&t->lock);
    for (;;) {
        while (!t->first && !t->over)
            pthread_cond_wait(&t->given, &t->lock);
        struct transfer_job *job = t->first;
        if (!job)
            break;
        t->first = job->next;
        if (!t->first)
            t->last = &t->first;
        pthread_mutex_unlock(&t->lock);
        job->result = do_it(&job->piece);
        pthread_mutex_lock(&t->lock);
        job->next = t->done;
        t->done = job;
        pthread_cond_signal(&t->ended);
        announce(t);
    }
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

static int start_threads(struct transfer *t)
{
    int error = 0;
    while (t->threads < THREADS_MOST && (unsigned)t->threads < t->depth && error == 0) {
        error = thread_start(&t->thread[t->threads], work, t);
        t->threads += error == 0;
    }
    return t->threads ? 0 : error;
}

static void *listen_to(void *arg)
{
    struct transfer *t = arg;
    uint64_t ends;
    while (!load_acquire32(&t->closing)) {
        if (!kept_is(&t->event) || (read(t->event.fd, &ends, sizeof ends) < 0 && errno != EINTR))
            /* nothing says any more that there is an end: who sleeps looks each time */
            futex_wait(&t->closing, 0, DEAF_SLICE);
        if (!load_acquire32(&t->closing))
            announce(t);
    }
    return NULL;
}

static void stop_listening(struct transfer *t)
{
    const uint64_t one = 1;
    if (t->event.fd < 0)
        return;
    store_release32(&t->closing, 1);
    futex_wake(&t->closing, 1);
    if (kept_is(&t->event))
        while (write(t->event.fd, &one, sizeof one) < 0 && errno == EINTR) { }
    else
        pthread_cancel(t->listener);        /* it sleeps on what was the event, and holds nothing */
    pthread_join(t->listener, NULL);
    kept_close(&t->event);
}

shared64 *transfer_ends(struct transfer *t)
{
    if (!t->ring || t->event.fd >= 0)
        return &t->ends;
    t->event = kept_of(eventfd(0, EFD_CLOEXEC));
    if (t->event.fd < 0)
        return NULL;
    if (uring_event(t->ring, t->event.fd) == 0 && thread_start(&t->listener, listen_to, t) == 0)
        return &t->ends;
    kept_close(&t->event);                           /* the ring has its own hold on it */
    return NULL;
}

/* A wrong setting is refused when the rank joins. */
static bool ring_wanted(void)
{
    char why[128];
    int64_t wanted = 1;
    return knob_int(KNOB_URING, &wanted, why, sizeof why) < 0 || wanted;
}

struct transfer *transfer_open(unsigned depth, int *error)
{
    struct transfer *t = calloc(1, sizeof *t);
    *error = -ENOMEM;
    if (!t)
        return NULL;
    t->event = KEPT_NONE;
    t->depth = depth < TRANSFER_DEPTH ? depth : TRANSFER_DEPTH;
    t->ring = ring_wanted() ? uring_open(t->depth, error) : NULL;
    if (t->ring)
        return t;
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->given, NULL);
    pthread_cond_init(&t->ended, NULL);
    t->last = &t->first;
    for (unsigned i = 0; i < t->depth; i++) {
        t->jobs[i].next = t->unused;
        t->unused = &t->jobs[i];
    }
    *error = start_threads(t);
    if (*error == 0)
        return t;
    transfer_close(t);
    return NULL;
}

int transfer_give(struct transfer *t, const struct transfer_piece *piece, unsigned tag)
{
    int r = -EAGAIN;
    if (t->under_way == t->depth)
        return r;
    if (t->ring)
        r = uring_give(t->ring, piece, tag);
    else {
        struct transfer_job *job = t->unused;
        t->unused = job->next;
        *job = (struct transfer_job){ .piece = *piece, .tag = tag };
        pthread_mutex_lock(&t->lock);
        *t->last = job;
        t->last = &job->next;
        pthread_cond_signal(&t->given);
        pthread_mutex_unlock(&t->lock);
        r = 0;
    }
    t->under_way += r == 0;
    return r;
}

static int take_done(struct transfer *t, struct transfer_end *end)
{
    struct transfer_job *job = t->done;
    if (!job)
        return 0;
    t->done = job->next;
    *end = (struct transfer_end){ job->tag, job->result };
    job->next = t->unused;
    t->unused = job;
    return 1;
}

int transfer_take(struct transfer *t, struct transfer_end *end)
{
    int n;
    if (!t->under_way)
        return 0;
    if (t->ring)
        n = uring_take(t->ring, end);
    else {
        pthread_mutex_lock(&t->lock);
        n = take_done(t, end);
        pthread_mutex_unlock(&t->lock);
    }
    t->under_way -= (unsigned)n;
    return n;
}

static void finish_threads(struct transfer *t)
{
    struct transfer_end end;
    pthread_mutex_lock(&t->lock);
    while (t->under_way) {
        while (!t->done)
            pthread_cond_wait(&t->ended, &t->lock);
        t->under_way -= (unsigned)take_done(t, &end);
    }
    t->over = true;
    pthread_cond_broadcast(&t->given);
    pthread_mutex_unlock(&t->lock);
    for (int i = 0; i < t->threads; i++)
        pthread_join(t->thread[i], NULL);
    pthread_cond_destroy(&t->ended);
    pthread_cond_destroy(&t->given);
    pthread_mutex_destroy(&t->lock);
}

void transfer_close(struct transfer *t)
{
    struct transfer_end end;
    if (!t)
        return;
    if (!t->ring)
        finish_threads(t);
    while (t->ring && t->under_way)
        if (uring_take(t->ring, &end))
            t->under_way--;
        else
            uring_wait(t->ring);
    stop_listening(t);
    if (t->ring)
        uring_close(t->ring);
    free(t);
}

const char *transfer_way(const char **why)
{
    static _Thread_local char said[128];
    int error = 0;
    struct uring *ring = ring_wanted() ? uring_open(1, &error) : NULL;
    *why = "";
    if (ring) {
        uring_close(ring);
        return "io_uring";
    }
    if (!ring_wanted())
        *why = "TUTTI_URING=0";
    else {
        snprintf(said, sizeof said, "io_uring cannot be had: %s", error_system(error));
        *why = said;
    }
    return "threads";
}
