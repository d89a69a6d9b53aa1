/* A sleeper says so in the word itself. So the end of a handle without a sleeper, the usual case,
 * takes no system call. A descriptor is made only for a caller that waits in a ring on a kernel
 * whose rings have no futex operation: it costs one more write at the end of the work. */
#include "engine/completion.h"

#include "os/futex.h"

#include <limits.h>
#include <sched.h>
#include <unistd.h>

void completion_sleep(struct completion *completion, uint64_t ns)
{
    if (completion_heard(completion))
        futex_wait(&completion->over, COMPLETION_HEARD, ns);
}

void completion_signal(struct completion *completion)
{
    const uint64_t one = 1;
    struct kept event = completion->event;
    if (fetch_or32(&completion->over, COMPLETION_OVER) & COMPLETION_HEARD)
        futex_wake(&completion->over, INT_MAX);  /* uses the address only: does not read the word */
    if (!event.file)
        return;
    ssize_t wrote = kept_is(&event) ? write(event.fd, &one, sizeof one) : 0;
    (void)wrote;                                     /* a count of one always fits */
    store_release32(&completion->rung, 1);
}

void completion_drop(struct completion *completion)
{
    if (!completion->event.file)
        return;
    while (!load_acquire32(&completion->rung))      /* the signalling thread is still at work */
        sched_yield();
    kept_close(&completion->event);
}
