/* A clock of a test's own. Ranks, or threads of ranks, sleep by it: it stands still while any of
 * them runs, and goes on to the first one's waking when all of them sleep. What is counted by it is
 * how long they slept, slice by slice, and the same on every machine. */
#ifndef TEST_WATCH_VIRTUAL_CLOCK_H
#define TEST_WATCH_VIRTUAL_CLOCK_H

#include "sync/wait.h"

#include <pthread.h>

#define MS UINT64_C(1000000)
enum { TIME_SLEEPERS = 16 };

struct sleeper { const struct futex_word *words; int n; uint64_t until; };

struct virtual_clock {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    uint64_t now;
    int running;
    void (*falls_asleep)(int sleeper);               /* in the lock; NULL: nobody wants to know */
    struct sleeper *asleep[TIME_SLEEPERS];
};
extern struct virtual_clock time_here;

void time_open(uint64_t now, int running);
uint64_t time_now(void *arg);
int  time_sleep(int sleeper, uint64_t ns);
void time_leave(void);                      /* one runs no more, and sleeps by this clock no more */
void time_leave_locked(void);
struct wait_ways *time_ways(int sleeper);

#endif
