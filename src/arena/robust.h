/* Job: a lock in shared memory that outlives its holder.
 * Owns: the mutex it is given.
 * Never: repairs the data under the lock. */
#ifndef TUTTI_ARENA_ROBUST_H
#define TUTTI_ARENA_ROBUST_H

#include <pthread.h>
#include <stdint.h>

int  robust_init(pthread_mutex_t *lock);            /* 0 or -errno */
/* 0: held. -EOWNERDEAD: held, but the last holder died: repair the data, then call robust_mend.
 * -ETIMEDOUT, -errno: not held. UINT64_MAX: no limit. */
int  robust_lock(pthread_mutex_t *lock, uint64_t timeout_ns);
int  robust_mend(pthread_mutex_t *lock);            /* the data are repaired. 0 or -errno */
void robust_unlock(pthread_mutex_t *lock);

#endif
