/* The lock over the directories: a robust mutex, so that a holder's death passes it on. Whoever gets it then finds nothing to
 * repair, because each change under it is made valid by one last store; it only says that the lock is whole again.
 * Cost: 20 ns when free. A wait is bounded by the caller and measured on CLOCK_MONOTONIC. */
#include "arena/arena.h"

#include <errno.h>
#include <sched.h>
#include <time.h>

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

int arena_lock(const struct arena *arena, uint64_t timeout_ns)
{
    pthread_mutex_t *lock = &arena->join->lock;
    int error = pthread_mutex_trylock(lock);
    if (error == EBUSY)
        error = lock_until(lock, timeout_ns);
    if (error == EOWNERDEAD)
        error = pthread_mutex_consistent(lock);
    return -error;
}

void arena_unlock(const struct arena *arena)
{
    pthread_mutex_unlock(&arena->join->lock);
}
