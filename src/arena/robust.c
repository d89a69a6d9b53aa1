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
/* glibc before 2.30 and musl lock by the clock of the day alone. Where somebody sets it back, a
 * sleep of theirs may be longer; the unlock ends it all the same. */
#if defined(__GLIBC__) && __GLIBC__ == 2 && __GLIBC_MINOR__ >= 30
enum { LOCK_CLOCK = CLOCK_MONOTONIC };
static int lock_at(pthread_mutex_t *lock, const struct timespec *at)
{
    return pthread_mutex_clocklock(lock, LOCK_CLOCK, at);
}
#else
enum { LOCK_CLOCK = CLOCK_REALTIME };
static int lock_at(pthread_mutex_t *lock, const struct timespec *at)
{
    return pthread_mutex_timedlock(lock, at);
}
#endif

static int lock_for(pthread_mutex_t *lock, uint64_t ns)
{
    struct timespec at;
    clock_gettime(LOCK_CLOCK, &at);
    ns += (uint64_t)at.tv_nsec;
    at.tv_sec += (time_t)(ns / 1000000000u);
    at.tv_nsec = (long)(ns % 1000000000u);
    return lock_at(lock, &at);
}

static int lock_until(pthread_mutex_t *lock, uint64_t timeout_ns)
{
    int error = ETIMEDOUT;
    uint64_t look = LOOK_NS;
    for (uint64_t began = clock_ns(), waited = 0; error == ETIMEDOUT && waited < timeout_ns;
         waited = clock_ns() - began) {
        uint64_t left = timeout_ns - waited;
        error = lock_for(lock, left < look ? left : look);
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
