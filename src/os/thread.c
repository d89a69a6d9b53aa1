/* A thread inherits its maker's signal mask: all signals are blocked before, restored after. Cost:
 * two system calls more. musl gives a thread 128 KiB of stack unless it is asked for more. */
#include "os/thread.h"

#include <signal.h>

enum { STACK_LEAST = 512 << 10 };

static void widen(pthread_attr_t *attributes)
{
    size_t bytes = 0;
    pthread_attr_getstacksize(attributes, &bytes);
    if (bytes < STACK_LEAST)
        pthread_attr_setstacksize(attributes, STACK_LEAST);
}

int thread_start(pthread_t *thread, void *(*run)(void *arg), void *arg)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_attr_t attributes;
    int error = pthread_attr_init(&attributes);
    if (!error) {
        widen(&attributes);
        error = pthread_create(thread, &attributes, run, arg);
        pthread_attr_destroy(&attributes);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return -error;
}
