/* Job: run operations under way: the queue of a comm, and the handles.
 * Owns: tutti_comm.engine.queue under queue_lock.
 * Never: runs a blocking call on a comm without work under way. */
#ifndef TUTTI_ENGINE_QUEUE_H
#define TUTTI_ENGINE_QUEUE_H

#include "engine/progress.h"
#include "coll/coll.h"

/* Starts an operation (call->work), or runs it at its place in the queue (blocking, with work under
 * way). c is copied if it is started. */
int queue_collective(struct tutti_comm *comm, struct coll *c, enum kind kind, uint32_t site,
                     const tutti_call *call);

bool queue_under_way(const struct tutti_comm *comm);
/* For a call that does not use the queue: waits until all work under way has ended. 0, or
 * -ECANCELED: the work failed, and the comm with it. */
int  queue_drain(struct tutti_comm *comm, enum kind kind, uint32_t site);
/* ns until the first deadline in the queue, or less; under queue_lock. */
uint64_t queue_slice(struct tutti_comm *comm);
extern const struct pump queue_pump;                 /* for the progress thread */

#endif
