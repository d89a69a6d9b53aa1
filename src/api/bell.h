/* Job: how the end of a handle is said: to whoever looks, sleeps on it in tutti_wait, or waits for it in a ring of the caller's own.
 * Owns: a handle's `over`, and a descriptor once one has been asked for.
 * Never: results; the lock it speaks of is the handle's. */
#ifndef TUTTI_API_BELL_H
#define TUTTI_API_BELL_H

#include "base/atomic.h"

#include <stdbool.h>

/* over: 1 once the result may be read; a futex private to the process. event: an eventfd + 1, 0 none; under the handle's lock. rung: 1 once
   it has been written: until then its owner may not close it. */
struct bell { shared32 over, rung; int event; };

static inline bool bell_over(const struct bell *bell) { return load_acquire32(&bell->over); }

/* Under the handle's lock. Once over is set its owner may free it, if it has no event. */
void bell_ring(struct bell *bell);
/* Before the handle is freed, which is over. */
void bell_drop(struct bell *bell);

#endif
