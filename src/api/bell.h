/* Job: how the end of a handle is said: to whoever looks, sleeps on it in tutti_wait, or waits for it in a ring of the caller's own.
 * Owns: a handle's `over`, and a descriptor once one has been asked for.
 * Never: results; the lock it speaks of is the handle's. */
#ifndef TUTTI_API_BELL_H
#define TUTTI_API_BELL_H

#include "base/atomic.h"
#include "os/kept.h"

#include <stdbool.h>

/* over: BELL_ bits, which are only ever set; a futex private to the process. event: an eventfd, 0 in `file`: none; under the handle's lock. rung: 1 once
   it has been written: until then its owner may not close it. */
enum { BELL_OVER = 1, BELL_HEARD = 2 };              /* the result may be read; somebody sleeps for that, or will: a ringer that sees it wakes */
struct bell { shared32 over, rung; struct kept event; };

static inline bool bell_over(const struct bell *bell) { return load_acquire32(&bell->over) & BELL_OVER; }

/* Says that somebody will sleep while `over` is BELL_HEARD. False: it is over. */
static inline bool bell_heard(struct bell *bell) { return !(fetch_or32(&bell->over, BELL_HEARD) & BELL_OVER); }
/* Sleeps until it is over, for so long at most. */
void bell_sleep(struct bell *bell, uint64_t ns);

/* Under the handle's lock. Once over is set its owner may free it, if it has no event. */
void bell_ring(struct bell *bell);
/* Before the handle is freed, which is over. */
void bell_drop(struct bell *bell);

#endif
