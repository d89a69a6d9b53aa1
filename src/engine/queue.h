/* Job: operations under way: the queue of a comm, and the handles.
 * Owns: tutti_comm.queue under queue_lock.
 * Never: the path of a blocking call on a comm without work under way. */
#ifndef TUTTI_ENGINE_QUEUE_H
#define TUTTI_ENGINE_QUEUE_H

#include "engine/completion.h"
#include "engine/progress.h"
#include "coll/coll.h"

/* What tutti_wait and tutti_test do with a handle that is no collective's. Such a handle begins with a pointer to this; a collective's with NULL. */
struct work_completion { struct completion *completion; struct tutti_comm *comm; pthread_mutex_t *lock; };         /* comm, lock: there as long as it is not over */
struct work_shape {
    int (*wait)(struct tutti_work *work, int timeout_ms);
    int (*test)(struct tutti_work *work);
    struct work_completion (*completion)(struct tutti_work *work);
};
struct work_completion work_completion(struct tutti_work *work);         /* of either kind */

/* Starts (call->work) or runs at its place in the queue (blocking, with work under way). c is copied for the former. */
int work_collective(struct tutti_comm *comm, struct coll *c, enum kind kind, uint32_t site, const tutti_call *call);

bool work_under_way(const struct tutti_comm *comm);
/* For what runs past the queue: waits until all that is under way has ended. 0, or -ECANCELED: it failed, and the comm with it. */
int  work_drain(struct tutti_comm *comm, enum kind kind, uint32_t site);
/* ns until the first deadline in the queue, or less; under queue_lock. */
uint64_t work_slice(struct tutti_comm *comm);
extern const struct pump queue_pump;                 /* for the progress thread */

#endif
