/* Caller and thread share the word that one waits on; the last of the two frees it. Cost: a thread
 * and an allocation for each call. */
#include "os/timed_call.h"

#include "base/clock.h"
#include "os/futex.h"
#include "os/thread.h"

#include <stdlib.h>

enum { HELD_BY_BOTH = 2 };

struct timed_call {
    void (*run)(void *arg);
    void *arg;
    shared32 over;                     /* 1: run has returned; by the thread; a futex */
    shared32 holders;
};

static void let_go(struct timed_call *a)
{
    if (fetch_sub32(&a->holders, 1) == 1)
        free(a);
}

static void *do_it(void *arg)
{
    struct timed_call *a = arg;
    a->run(a->arg);
    store_release32(&a->over, 1);
    futex_wake(&a->over, 1);
    let_go(a);
    return NULL;
}

static bool start(struct timed_call *a)
{
    pthread_t thread;
    if (thread_start(&thread, do_it, a) < 0)
        return false;
    pthread_detach(thread);
    return true;
}

bool timed_call_run(void (*run)(void *arg), void *arg, uint64_t patience_ns)
{
    struct timed_call *a = malloc(sizeof *a);
    if (a)
        *a = (struct timed_call){ .run = run, .arg = arg, .holders = HELD_BY_BOTH };
    if (!a || !start(a)) {
        free(a);
        run(arg);
        return true;
    }
    uint64_t end = clock_ns() + patience_ns, now;
    while (!load_acquire32(&a->over) && (now = clock_ns()) < end)
        futex_wait(&a->over, 0, end - now);
    bool over = load_acquire32(&a->over);
    let_go(a);
    return over;
}
