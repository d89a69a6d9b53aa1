/* A robust mutex of the C library: the kernel passes it on when its holder goes. Cost: 20 ns when free. A wait is bounded by the
 * caller and measured on CLOCK_MONOTONIC. */
#include "arena/robust.h"

#include "base/atomic.h"
#include "base/clock.h"

#include <errno.h>
#include <sched.h>
#include <time.h>

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
/* ThreadSanitizer does not know pthread_mutex_clocklock and would take the unlock for a mistake. */
static int lock_until(pthread_mutex_t *lock, uint64_t timeout_ns)
{
    int error = EBUSY;
    for (uint64_t began = clock_ns(); error == EBUSY && clock_ns() - began < timeout_ns; error = pthread_mutex_trylock(lock))
        sched_yield();
    return error == EBUSY ? ETIMEDOUT : error;
}
#else
static int lock_until(pthread_mutex_t *lock, uint64_t timeout_ns)
{
    uint64_t now = clock_ns();
    if (timeout_ns > (uint64_t)INT64_MAX - now)
        return pthread_mutex_lock(lock);
    uint64_t end = now + timeout_ns;
    struct timespec at = { (time_t)(end / 1000000000u), (long)(end % 1000000000u) };
    return pthread_mutex_clocklock(lock, CLOCK_MONOTONIC, &at);
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
