/* Job: the completion event of a handle, for whoever polls it, sleeps on it in tutti_wait, or waits
 *      for it in an io_uring of its own.
 * Owns: a handle's `over`, and a descriptor once one has been asked for.
 * Never: results; the lock it speaks of is the handle's. */
#ifndef TUTTI_ENGINE_COMPLETION_H
#define TUTTI_ENGINE_COMPLETION_H

#include "base/atomic.h"
#include "os/kept.h"

#include <stdbool.h>

/* over: COMPLETION_ bits, which are only ever set; a futex private to the process. event: an
   eventfd, 0 in `file`: none; under the handle's lock. rung: 1 once it has been written: until then
   its owner may not close it. */
/* the result may be read; somebody sleeps for that, or will: a ringer that sees it wakes */
enum { COMPLETION_OVER = 1, COMPLETION_HEARD = 2 };
struct completion { shared32 over, rung; struct kept event; };

static inline bool completion_over(const struct completion *completion)
{
    return load_acquire32(&completion->over) & COMPLETION_OVER;
}

/* Says that somebody will sleep while `over` is COMPLETION_HEARD. False: it is over. */
static inline bool completion_heard(struct completion *completion)
{
    return !(fetch_or32(&completion->over, COMPLETION_HEARD) & COMPLETION_OVER);
}

/* Sleeps until it is over, for so long at most. */
void completion_sleep(struct completion *completion, uint64_t ns);

/* Under the handle's lock. Once over is set its owner may free it, if it has no event. */
void completion_signal(struct completion *completion);
/* Before the handle is freed, which is over. */
void completion_drop(struct completion *completion);

#endif
