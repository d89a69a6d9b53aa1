/* Who sleeps says so in the word itself, so that the end of a handle nobody sleeps for, as most
 * are, is no system call. A descriptor is made for those alone who wait in a ring on a kernel whose
 * rings know no futex: one more write at the end of their work. */
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
        futex_wake(&completion->over, INT_MAX);         /* of an address: nothing is read there */
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
    while (!load_acquire32(&completion->rung))      /* whoever rings is between two instructions */
        sched_yield();
    kept_close(&completion->event);
}
