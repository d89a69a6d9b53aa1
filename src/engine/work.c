/* A wait is the same whoever made the work: what may refuse it, how long it lasts, what becomes of
 * the handle. Its maker only pumps. A handle that is over needs neither its comm nor its maker. */
#include "engine/work.h"

#include "engine/guard.h"
#include "engine/progress.h"

#include <stdlib.h>

bool work_patience_over(const struct tutti_work *work, const struct patience *patience)
{
    return (patience->most_ns >= 0
            && clock_ns() - patience->began_ns >= (uint64_t)patience->most_ns)
        || (patience->heeds_late && work_late(work));
}

static uint64_t until(uint64_t end_ns, uint64_t now)
{
    return end_ns > now ? end_ns - now + 1 : 1;
}

static uint64_t work_nap(const struct tutti_work *work, const struct patience *patience)
{
    uint64_t now = clock_ns(), nap = WAIT_LONG, left;
    if (patience->most_ns >= 0) {
        left = until(patience->began_ns + (uint64_t)patience->most_ns, now);
        nap = left < nap ? left : nap;
    }
    if (patience->heeds_late && work->keep_ns >= 0) {
        left = until((uint64_t)work->keep_ns, now);
        nap = left < nap ? left : nap;
    }
    return nap;
}

void work_sleep(struct tutti_work *work, const struct patience *patience)
{
    /* relaxed: our own word until COMPLETION_HEARD is set */
    if (!load_relaxed64(&work->slept_ns))
        store_relaxed64(&work->slept_ns, clock_ns());
    completion_sleep(&work->completion, work_nap(work, patience));
}

/* By the thread that ends the work: the waiter may find the comm gone when it wakes. */
static void work_slept(const struct tutti_work *work)
{
    bool heard = load_acquire32(&work->completion.over) & COMPLETION_HEARD;
    /* relaxed: a waiter that gives up now may be counted or not */
    uint64_t slept_ns = load_relaxed64(&work->slept_ns);
    if (heard && slept_ns)
        wait_slept(&work->comm->watch.budget, clock_ns() - slept_ns);
}

void *work_make(struct tutti_comm *comm, size_t bytes, int *error)
{
    void *work = malloc(bytes);
    *error = work ? progress_start(comm->world) : -ENOMEM;
    if (*error < 0) {
        free(work);
        work = NULL;
    }
    return work;
}

void work_give(struct tutti_work *work, const tutti_call *call)
{
    if (call->done)
        fetch_add32(&work->comm->world->threads.seat->promises, 1);  /* E62 release */
    work->done = call->done;
    work->done_arg = call->done_arg;
    *call->work = work;
}

void work_call_done(struct tutti_work *work, pthread_mutex_t *lock, uint32_t nested)
{
    struct tutti_comm *comm = work->comm, *outer = comm_callback;
    work_slept(work);
    if (!work->done)
        return;
    pthread_mutex_unlock(lock);
    comm_callback = comm;
    fetch_or32(&comm->watch.attention, nested);
    work->done(work->result, work->done_arg);
    fetch_and32(&comm->watch.attention, ~nested);
    comm_callback = outer;
    pthread_mutex_lock(lock);
    fetch_sub32(&comm->world->threads.seat->promises, 1);            /* E62 release */
}

int work_end(struct tutti_work *work, int awaited)
{
    struct patience endless = patience_endless();
    while (!completion_over(&work->completion))
        work->shape->await(work, &endless);
    int r = awaited < 0 && awaited != -EAGAIN && work->result < 0 ? awaited : work->result;
    completion_drop(&work->completion);
    return r;
}

/* 0, or -ECHILD: what a fork left behind will never be over. */
static int work_check(const struct tutti_work *work)
{
    if (completion_over(&work->completion))
        return 0;
    if (*work->comm->fork_word != 1)
        return -ECHILD;
    guard_known(work->comm);
    return 0;
}

/* TUTTI_KEEP's deadline also ends the wait when it passes. */
int work_wait(struct tutti_work *work, int timeout_ms)
{
    int r = work_check(work);
    if (r < 0)
        return r;
    if (comm_callback == work->comm)
        return -EDEADLK;
    if (!completion_over(&work->completion)) {
        struct patience patience = {
            .began_ns = clock_ns(),
            .most_ns = timeout_ms > 0 ? (int64_t)timeout_ms * 1000000 : -1,
            .heeds_late = timeout_ms == 0 || (timeout_ms > 0 && !work_late(work)),
            .told = true
        };
        r = work->shape->await(work, &patience);
    }
    if (r == -EAGAIN && !completion_over(&work->completion)) {
        /* relaxed: what comes until the next wait is no sleep */
        store_relaxed64(&work->slept_ns, 0);
        return work_late(work) ? -ETIMEDOUT : -EAGAIN;
    }
    r = work_end(work, r);
    free(work->lists);
    free(work);
    return r;
}

int work_test(struct tutti_work *work)
{
    int r = work_check(work);
    if (r < 0)
        return r;
    if (!completion_over(&work->completion) && comm_callback != work->comm)
        work->shape->move(work);
    if (completion_over(&work->completion))
        return work->result;
    return work_late(work) ? -ETIMEDOUT : -EAGAIN;
}
