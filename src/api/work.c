/* A comm's operations run one after another in call order, so its work is a queue, and only its head is ever under way. Whoever holds
 * queue_lock may pump it: the thread that starts, tests or waits, and the progress thread. A starting call pumps at once, so that peers
 * see its arrival; a waiting one pumps and spins like a blocking call, and only when that took too long leaves it to the progress
 * thread, which sleeps on the words of all comms with work at once. */
#define TUTTI_NO_SITES
#include "api/work.h"

#include "api/enter.h"
#include "api/progress.h"
#include "api/run.h"
#include "base/clock.h"
#include "watch/drive.h"
#include "watch/journal.h"
#include "watch/verdict.h"

#include <stdlib.h>

struct tutti_work {
    struct coll c;
    struct tutti_work *next;
    shared32 over;                     /* 1 once result may be read; a private futex */
    int result;
    enum kind kind;
    bool begun, blocking;
    void (*done)(int error, void *arg);
    void *done_arg;
};

bool work_under_way(struct tutti_comm *comm)
{
    return load_acquire32(&comm->watch.attention) & ATTENTION_WORK;
}

/* Ends the head; its handle may be freed by its owner from here on. */
static void work_finish(struct tutti_comm *comm, struct tutti_work *work, int result)
{
    work->result = work->begun ? run_end(&work->c, result) : result;
    comm->queue = work->next;
    if (work->done) {
        struct tutti_comm *outer = enter_callback;
        enter_callback = comm;
        fetch_or32(&comm->watch.attention, ATTENTION_NESTED);
        work->done(result, work->done_arg);
        fetch_and32(&comm->watch.attention, ~(uint32_t)ATTENTION_NESTED);
        enter_callback = outer;
    }
    store_release32(&work->over, 1);
    futex_wake(&work->over, INT32_MAX);
}

/* Under queue_lock: advances as far as it goes. NULL, or the head that waits. */
struct op *work_pump(struct tutti_comm *comm, bool look)
{
    while (comm->queue) {
        struct tutti_work *work = comm->queue;
        int r;
        if (!work->begun && (load_acquire32(&comm->watch.attention) & ATTENTION_BROKEN))
            r = -ECANCELED;
        else {
            if (!work->begun) {
                work->begun = true;
                run_begin(&work->c, clock_tick());
            }
            r = drive_step(&work->c.op);
            if (r == WAITING && look) {
                int seen = drive_look(&work->c.op);
                if (seen > 0)
                    continue;
                r = seen < 0 ? seen : WAITING;
            }
            if (r == WAITING)
                return &work->c.op;
        }
        work_finish(comm, work, r == DONE ? 0 : r);
    }
    comm->queue_tail = NULL;
    fetch_and32(&comm->watch.attention, ~(uint32_t)ATTENTION_WORK);
    return NULL;
}

static void work_append(struct tutti_comm *comm, struct tutti_work *work)
{
    if (comm->queue_tail)
        comm->queue_tail->next = work;
    else
        comm->queue = work;
    comm->queue_tail = work;
    fetch_or32(&comm->watch.attention, ATTENTION_WORK);
}

static bool work_late(struct tutti_work *work)
{
    struct op *op = &work->c.op;
    return op->keep && op->timeout_ns >= 0 && clock_ns() - op->began_ns >= (uint64_t)op->timeout_ns;
}

/* Pumps, and tells the progress thread if what it sleeps on is no longer what the queue waits for. Copies the head's wait. */
static void work_push(struct tutti_comm *comm, struct wait *wait)
{
    const shared64 *before = NULL;
    pthread_mutex_lock(&comm->queue_lock);
    struct tutti_work *first = comm->queue;
    if (first && first->begun)
        before = first->c.op.wait.word;
    struct op *head = work_pump(comm, false);
    bool moved = head && (comm->queue != first || head->wait.word != before);
    *wait = head ? head->wait : (struct wait){ NULL, 0, 0, false };
    pthread_mutex_unlock(&comm->queue_lock);
    if (moved)
        progress_kick(comm->world);
}

/* Until the work is over: 0. Else -EAGAIN: the patience is; -EINTR: the interrupt function said stop, and the comm is aborted. */
static int work_await(struct tutti_comm *comm, struct tutti_work *work, int64_t patience_ns, bool heed_late)
{
    struct watch *w = &comm->watch;
    struct wait_ends ends = { &w->slot->verdict, &w->slot->news };
    uint64_t began = clock_ns(), slice = 1000000;
    while (!load_acquire32(&work->over)) {
        struct wait wait;
        work_push(comm, &wait);
        if (load_acquire32(&work->over))
            break;
        uint64_t passed = clock_ns() - began;
        if ((patience_ns >= 0 && passed >= (uint64_t)patience_ns) || (heed_late && work_late(work)))
            return -EAGAIN;
        if (slice == 1000000 && wait.word && wait.value != UINT64_MAX && wait_spin(wait.word, wait.value, ends, w->budget, w->ways))
            continue;
        uint64_t left = patience_ns >= 0 ? (uint64_t)patience_ns - passed + 1 : UINT64_MAX;
        futex_wait(&work->over, 0, slice < left ? slice : left);
        slice = slice < 128000000 ? slice * 2 : 250000000;
        if (w->interrupt && !load_acquire32(&work->over) && w->interrupt(w->interrupt_arg)) {
            verdict_quit(w, QUIT_INTERRUPT);
            return -EINTR;
        }
    }
    return 0;
}

/* The result of work that is or will shortly be over; frees it. After an interrupt the abort ends it: its buffers are in use until then. */
static int work_take(struct tutti_comm *comm, struct tutti_work *work, int interrupted)
{
    while (!load_acquire32(&work->over))
        work_await(comm, work, -1, false);
    int r = interrupted ? interrupted : work->result;
    free(work);
    return r;
}

int work_collective(struct tutti_comm *comm, struct coll *c, enum kind kind, uint32_t site, const tutti_call *call)
{
    struct tutti_work *work = malloc(sizeof *work);
    int r = work ? progress_start(comm->world) : -ENOMEM;
    if (r < 0) {
        free(work);
        comm_explain(comm, "%s: no memory or no thread for work under way", kind_name(kind));
        return r;
    }
    *work = (struct tutti_work){ .c = *c, .kind = kind, .blocking = !(call && call->work) };
    if (!work->blocking) {
        work->done = call->done;
        work->done_arg = call->done_arg;
        work->c.op.keep = call->flags & TUTTI_KEEP;
        *call->work = work;
    }
    pthread_mutex_lock(&comm->queue_lock);
    run_number(comm, &work->c, kind, site, enter_timeout(comm, call));
    drive_started(&work->c.op);
    work_append(comm, work);
    struct op *head = work_pump(comm, false);
    bool blocking = work->blocking;                  /* a handle may be gone once the lock is: another thread may wait for it */
    pthread_mutex_unlock(&comm->queue_lock);
    if (head)
        progress_kick(comm->world);
    if (!blocking)
        return 0;
    return work_take(comm, work, work_await(comm, work, -1, false));
}

int tutti_wait_at(const char *site, tutti_work *work, int timeout_ms)
{
    (void)site;
    if (!work)
        return -EINVAL;
    struct tutti_comm *comm = work->c.comm;
    if (*comm->fork_word != 1)
        return -ECHILD;
    if (enter_callback == comm)
        return -EDEADLK;
    int r = work_await(comm, work, timeout_ms > 0 ? (int64_t)timeout_ms * 1000000 : -1, timeout_ms >= 0);
    if (r == -EAGAIN && !load_acquire32(&work->over))
        return work_late(work) ? -ETIMEDOUT : -EAGAIN;
    return work_take(comm, work, r == -EINTR ? r : 0);
}

int tutti_wait(tutti_work *work, int timeout_ms) { return tutti_wait_at(NULL, work, timeout_ms); }

int tutti_test(tutti_work *work)
{
    if (!work)
        return -EINVAL;
    struct tutti_comm *comm = work->c.comm;
    if (*comm->fork_word != 1)
        return -ECHILD;
    if (!load_acquire32(&work->over) && enter_callback != comm && pthread_mutex_trylock(&comm->queue_lock) == 0) {
        struct tutti_work *first = comm->queue;
        struct op *head = work_pump(comm, false);
        bool moved = head && comm->queue != first;
        pthread_mutex_unlock(&comm->queue_lock);
        if (moved)
            progress_kick(comm->world);
    }
    if (load_acquire32(&work->over))
        return work->result;
    return work_late(work) ? -ETIMEDOUT : -EAGAIN;
}
