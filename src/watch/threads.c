/* A few words per rank, which change at a thread's first call and at its end; any other call only
 * compares its thread with the last one. A thread that ends unseen (by a bare system call) counts
 * as living for ever, which can only hide a cycle. */
#include "watch/threads.h"

#include <stdlib.h>

_Thread_local bool threads_serves;

int threads_number(const struct threads *t)
{
    uint64_t self = threads_self();
    for (int i = 0; i < THREADS_MAX; i++)
        /* relaxed: this thread stored its own number; any other number is only unequal */
        if (load_relaxed64(&t->self[i]) == self)
            return i;
    return -1;
}

bool threads_known(const struct threads *t)
{
    /* E62 acquire */
    return threads_serves || threads_number(t) >= 0
        || (load_acquire32(&t->seat->threads) & THREADS_MORE);
}

static int threads_take(struct threads *t)
{
    for (int i = 0; i < THREADS_MAX; i++)
        /* relaxed: changes under the lock that we hold */
        if (load_relaxed64(&t->self[i]) == 0) {
            store_relaxed64(&t->self[i], threads_self());            /* relaxed: as above */
            return i;
        }
    return -1;
}

void threads_call(struct threads *t)
{
    int n = threads_number(t);
    n = n < 0 ? threads_take(t) : n;
    uint32_t bit = n < 0 ? THREADS_MORE : UINT32_C(1) << n;
    fetch_or32(&t->seat->threads, bit);                              /* E62 release */
}

bool threads_end(struct threads *t)
{
    int n = threads_number(t);
    if (n < 0)
        return false;
    shared64 *stamp = &t->seat->waiters[n].stamp;
    if (load_relaxed64(stamp) & 1)          /* relaxed: our own word; it was cancelled in a wait */
        fetch_add64(stamp, 1);
    fetch_and32(&t->seat->threads, ~(UINT32_C(1) << n));      /* E62 release */
    store_relaxed64(&t->self[n], 0);                          /* relaxed: under the world's lock */
    return true;
}

void threads_close(struct threads *t)
{
    for (int i = 0; i < THREADS_MAX; i++)
        free(t->memory[i]);
}
