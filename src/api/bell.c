/* Who sleeps says so in the word itself, so that the end of a handle nobody sleeps for, as most are, is no system call.
 * A descriptor is made for those alone who wait in a ring on a kernel whose rings know no futex: one more write at the end of their work. */
#include "api/bell.h"

#include "os/futex.h"

#include <limits.h>
#include <sched.h>
#include <unistd.h>

void bell_sleep(struct bell *bell, uint64_t ns)
{
    if (bell_heard(bell))
        futex_wait(&bell->over, BELL_HEARD, ns);
}

void bell_ring(struct bell *bell)
{
    const uint64_t one = 1;
    struct kept event = bell->event;
    if (fetch_or32(&bell->over, BELL_OVER) & BELL_HEARD)
        futex_wake(&bell->over, INT_MAX);            /* of an address: nothing is read there */
    if (!event.file)
        return;
    ssize_t wrote = kept_is(&event) ? write(event.fd, &one, sizeof one) : 0;
    (void)wrote;                                     /* a count of one always fits */
    store_release32(&bell->rung, 1);
}

void bell_drop(struct bell *bell)
{
    if (!bell->event.file)
        return;
    while (!load_acquire32(&bell->rung))             /* whoever rings is between two instructions */
        sched_yield();
    kept_close(&bell->event);
}
