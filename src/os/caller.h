/* Job: what a call leaves as the caller has it: errno, and whether its thread can be cancelled.
 * Owns: nothing.
 * Never: the signal mask, which only threads of ours have otherwise; floating-point
 *        modes (coll/modes.h).
 *
 * A thread that is cancelled in a call is cancelled behind it: in the middle it would leave its
 * comm in use for ever. So what can sleep, read a file or make a thread stands under CALLER_KEPT;
 * what spins meets no cancellation point. Cost: 15 ns. */
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

/* A declaration, the first of a function; it counts until the function returns. */
#define CALLER_KEPT __attribute__((cleanup(caller_end), unused)) \
    struct caller caller_kept = caller_begin()

#endif
