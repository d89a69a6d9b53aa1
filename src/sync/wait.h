/* Job: wait until a word in any rank's memory reaches a value: spin, yield, sleep.
 * Owns: nothing; the word belongs to its writer.
 * Never: knows arenas, deaths, deadlines. The caller passes the clock, sleep, wake, and the words
 *        that end a wait early.
 *
 * Words only grow, so "reached" is >=, and a value that has come never goes away. */
#ifndef TUTTI_SYNC_WAIT_H
#define TUTTI_SYNC_WAIT_H

#include "base/atomic.h"
#include "os/futex.h"

#include <errno.h>

struct wait_ways {                    /* how this rank calls the kernel; tests put their own here */
    /* monotonic ns */
    uint64_t (*now)(void *arg);
    /* as futex_wait_any; n == 1: as futex_wait */
    int  (*sleep)(void *arg, const struct futex_word *words, int n, uint64_t ns);
    /* as futex_wake */
    int  (*wake)(void *arg, shared32 *word, int n);
    void (*yield)(void *arg);
    void *arg;
};
extern const struct wait_ways wait_ways_kernel;

/* Sleeps until one of n words changes, for ns at most. A kernel without futex_waitv sleeps on the
 * first word only, for alone_ns at most. */
static inline int wait_sleep(const struct wait_ways *ways, const struct futex_word *words, int n,
                             uint64_t ns, uint64_t alone_ns)
{
    int r = ways->sleep(ways->arg, words, n, ns);
    return r == -ENOSYS ? ways->sleep(ways->arg, words, 1, alone_ns) : r;
}

struct wait_budget {
    uint64_t spin_ticks;              /* of the time stamp counter; 0 if ranks outnumber CPUs */
    uint32_t yields;                  /* how often the CPU is offered to others before a sleep */
    /* and how long at most: a busy neighbour keeps the CPU for milliseconds; 0: no such bound */
    uint64_t yield_ticks;
    /* spins of spin_ticks before a sleep, for a caller that checks the ends of the wait between; 0:
     * one */
    uint32_t spin_rounds;
};

/* a wait ends early when either is not 0 */
struct wait_ends { const shared64 *verdict; const shared32 *news; };

/* 1: *word >= value (acquire: what was written before it may be read). 0: the budget is spent, or
 * an end was seen. */
int wait_spin(const shared64 *word, uint64_t value, struct wait_ends ends,
              struct wait_budget budget, const struct wait_ways *ways);

#endif
