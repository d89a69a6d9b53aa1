/* Job: restore the caller's errno and cancellation state at the end of a call.
 * Owns: nothing.
 * Never: changes the signal mask (only our threads have another one) or floating-point modes
 *        (coll/modes.h).
 *
 * A thread that is cancelled in a call is cancelled after it: in the middle it would leave its comm
 * in use for ever. So code that can sleep, read a file or make a thread stands under CALLER_KEPT.
 * A spin meets no cancellation point. Cost: 15 ns. */
#ifndef TUTTI_OS_CALLER_H
#define TUTTI_OS_CALLER_H

#include <errno.h>
#include <pthread.h>

struct caller { int error, cancel; };

static inline struct caller caller_begin(void)
{
    struct caller caller = { errno, PTHREAD_CANCEL_ENABLE };
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &caller.cancel);
    return caller;
}

static inline void caller_end(struct caller *caller)
{
    int ours;
    pthread_setcancelstate(caller->cancel, &ours);
    errno = caller->error;
}

/* The first declaration of a function; holds until the function returns. */
#define CALLER_KEPT __attribute__((cleanup(caller_end), unused)) \
    struct caller caller_kept = caller_begin()

#endif
