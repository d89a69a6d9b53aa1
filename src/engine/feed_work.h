/* Job: run puts and gets of broadcast queues under way as work: their handles, and their pump.
 * Owns: the handles; tutti_queue.engine and tutti_queue.works.
 * Never: moves messages (feed/). */
#ifndef TUTTI_ENGINE_FEED_WORK_H
#define TUTTI_ENGINE_FEED_WORK_H

#include "engine/progress.h"
#include "feed/feed.h"

/* With call->work: starts it and leaves the handle. Without: runs it to its end, behind those that
 * are under way. The calling thread is inside. task is copied, and the lists of its `parts`. */
int feed_work_run(struct tutti_queue *q, const struct feed_task *task, int parts,
                  const tutti_call *call);
bool feed_works(const struct tutti_comm *comm);      /* some are under way */
/* All end with -ECANCELED. The queue is closed: no thread starts more. */
void feed_works_end(struct tutti_queue *q);
/* Returns when no thread is at work for this queue any more. It is closed. */
void feed_works_leave(struct tutti_queue *q);

extern const struct pump feed_pump;                  /* for the progress thread */

#endif
