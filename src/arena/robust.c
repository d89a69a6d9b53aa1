/* A robust mutex of the C library: the kernel passes it on when its holder dies. The caller limits
 * the wait, which is measured on CLOCK_MONOTONIC. Cost: 20 ns when free.
 *
 * A sleeper tries the lock now and then, because a wake can be lost. An unlock wakes one sleeper,
 * the only one to know that there may be more. A third thread may take the lock first, and the
 * woken sleeper may be killed before it marks the lock's word as awaited. Then nobody wakes the
 * others: the kernel passes on a dead sleeper's wake only if the lock is free. The next try repairs
 * that: it marks the word again. */
#include "arena/robust.h"

#include "base/atomic.h"
#include "base/clock.h"

#include <errno.h>
#include <sched.h>
#include <time.h>

#if !defined(TUTTI_TSAN)
/* grows, or 1,000 who wait for a holder without a CPU would take all there are */
enum { LOOK_NS = 5000000, LOOK_LAST_NS = 160000000 };
#endif

int robust_init(pthread_mutex_t *lock)
{
    pthread_mutexattr_t attributes;
    int error = pthread_mutexattr_init(&attributes);
    if (error)
        return -error;
    error = pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    if (!error)
        error = pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    if (!error)
        error = pthread_mutex_init(lock, &attributes);
    pthread_mutexattr_destroy(&attributes);
    return -error;
}

#if defined(TUTTI_TSAN)
/* ThreadSanitizer does not know pthread_mutex_clocklock and would report the unlock as an error. */
static int lock_until(pthread_mutex_t *lock, uint64_t timeout_ns)
{
    int error = EBUSY;
    for (uint64_t began = clock_ns(); error == EBUSY && clock_ns() - began < timeout_ns;
         error = pthread_mutex_trylock(lock))
        sched_yield();
    return error == EBUSY ? ETIMEDOUT : error;
}
#else
static int lock_until(pthread_mutex_t *lock, uint64_t timeout_ns)
{
    int error = ETIMEDOUT;
    uint64_t look = LOOK_NS;
    for (uint64_t began = clock_ns(), waited = 0; error == ETIMEDOUT && waited < timeout_ns;
         waited = clock_ns() - began) {
        uint64_t left = timeout_ns - waited,
                 end = began + waited + (left < look ? left : look);
        struct timespec at = { (time_t)(end / 1000000000u), (long)(end % 1000000000u) };
        error = pthread_mutex_clocklock(lock, CLOCK_MONOTONIC, &at);
        look = 2 * look < LOOK_LAST_NS ? 2 * look : LOOK_LAST_NS;
    }
    return error;
}
#endif

int robust_lock(pthread_mutex_t *lock, uint64_t timeout_ns)
{
    int error = pthread_mutex_trylock(lock);
    if (error == EBUSY)
        error = lock_until(lock, timeout_ns);
    return -error;
}

int robust_mend(pthread_mutex_t *lock) { return -pthread_mutex_consistent(lock); }
void robust_unlock(pthread_mutex_t *lock) { pthread_mutex_unlock(lock); }
