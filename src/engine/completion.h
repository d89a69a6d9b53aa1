/* Job: signal the end of a handle to a caller that polls it, sleeps on it in tutti_wait, or waits
 *      for it in an io_uring of its own.
 * Owns: a handle's `over`, and a descriptor once one has been asked for.
 * Never: holds results; the lock that the comments name is the handle's. */
#ifndef TUTTI_ENGINE_COMPLETION_H
#define TUTTI_ENGINE_COMPLETION_H

#include "base/atomic.h"
#include "os/kept.h"

#include <stdbool.h>

/* over: COMPLETION_ bits, which are only ever set; a futex private to the process. event: an
   eventfd, with `file` 0: none; under the handle's lock. rung: 1 after the write to event: its
   owner may not close it before. */
/* OVER: the result may be read. HEARD: a thread sleeps for that, or will: the thread that sets OVER
   wakes it. */
enum { COMPLETION_OVER = 1, COMPLETION_HEARD = 2 };
struct completion { shared32 over, rung; struct kept event; };

static inline bool completion_over(const struct completion *completion)
{
    return load_acquire32(&completion->over) & COMPLETION_OVER;
}

/* Says that this thread will sleep while `over` is COMPLETION_HEARD. False: it is over. */
static inline bool completion_heard(struct completion *completion)
{
    return !(fetch_or32(&completion->over, COMPLETION_HEARD) & COMPLETION_OVER);
}

/* Sleeps until it is over, for `ns` at most. */
void completion_sleep(struct completion *completion, uint64_t ns);

/* Called under the handle's lock. Once OVER is set, the handle's owner may free it, if it has no
   event. */
void completion_signal(struct completion *completion);
/* Called before a handle that is over is freed. */
void completion_drop(struct completion *completion);

#endif
