/* Job: wait, for any purpose: spin, yield, then sleep slice by slice, until a word in any rank's
 *      memory reaches a value.
 * Owns: what a budget has learned; the word belongs to its writer.
 * Never: knows arenas, deaths, deadlines. The caller passes the clock, sleep, wake, and the words
 *        that end a wait early.
 *
 * Words only grow, so "reached" is >=, and a value that has come never goes away. */
#ifndef TUTTI_SYNC_WAIT_H
#define TUTTI_SYNC_WAIT_H

#include "base/atomic.h"
#include "os/futex.h"

#include <errno.h>
#include <stdbool.h>

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

/* What else must go on while a thread waits: called before each yield, and in a sleep after 20 us,
 * 40 us, 80 us …, then each 2 ms. run NULL: nothing; then these are wait_ways_kernel,
 * or, under memcheck, these without futex_waitv. */
struct wait_progress { void (*run)(void *arg); void *arg; };
struct wait_ways wait_ways_with(struct wait_progress *progress);

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
    uint32_t yields;                  /* how often at most the CPU is offered to others */
    /* and how long at most: a busy neighbour keeps the CPU for milliseconds; 0: no such bound */
    uint64_t yield_ticks;
    /* spins of spin_ticks before a sleep, for a caller that checks the ends of the wait between; 0:
     * one */
    uint32_t spin_rounds;
    shared8 halvings;                 /* of `yields`, as learned; any thread of this rank */
};

/* How often the CPU is offered to others now. */
uint32_t wait_yields(const struct wait_budget *budget);
/* A sleep of a wait took so long. If it was short, more yields would have seen what ended it; if it
 * was long, all of them were in vain. */
void wait_slept(struct wait_budget *budget, uint64_t took);

/* True: the last few sleeps of this budget's waits were long. */
bool wait_long_lately(const struct wait_budget *budget);

/* What a wait may spend of it for which another thread of the rank wakes up as well: spins are as
 * much in vain as yields, and halved with them. */
struct wait_budget wait_learned_budget(const struct wait_budget *budget);

/* Whether it pays to poll for what comes again and again, at a pace that is learned: polls are
 * worth it while things come within `soon` ticks of the wait's beginning, about what a sleep and
 * its wake cost. Each wait says when what it waited for came. One that came later costs a credit,
 * one that came soon gives one. Without credit a waiter sleeps at once. */
struct wait_pace { uint64_t soon; uint32_t credit; };              /* credit 0 at first */
enum { PACE_CREDIT = 2 };                                          /* at most */
static inline void wait_pace_learn(struct wait_pace *pace, uint64_t ticks)
{
    if (ticks <= pace->soon)
        pace->credit += pace->credit < PACE_CREDIT;
    else
        pace->credit -= pace->credit > 0;
}
/* What the next wait may spend before it sleeps, of a budget. */
struct wait_budget wait_pace_budget(const struct wait_pace *pace,
                                    const struct wait_budget *budget);

/* Before a sleep the waiter looks at what has no word: deadlines, deaths without a mark. So a sleep
   is cut into slices, ns.
   WAIT_BRIEF  on the word alone. Only where ranks share CPUs, unless sleeps have been long lately
   WAIT_LONG   on all words that can end the wait
   No thread sleeps longer between two looks. */
enum { WAIT_BRIEF = 1000000, WAIT_LONG = 250000000 };

/* What comes next in a wait. */
enum wait_slice {
    SLICE_BRIEF,
    SLICE_FIRST,                      /* long, after a quick question for deaths */
    SLICE_LATER                       /* long, after a thorough question */
};

static inline int wait_first_slice(const struct wait_budget *budget)
{
    return budget->spin_ticks || wait_long_lately(budget) ? SLICE_FIRST : SLICE_BRIEF;
}

static inline uint64_t wait_slice_ns(int slice)
{
    return slice == SLICE_BRIEF ? WAIT_BRIEF : WAIT_LONG;
}

/* The slice of a waiter that was woken in vain. waited: the time since something moved, ns. */
static inline int wait_slice_after(uint64_t waited)
{
    return waited < WAIT_LONG ? SLICE_FIRST : SLICE_LATER;
}

/* The cheap phases, for a caller that polls more than one word between two turns. */
struct wait_turns { uint64_t began; uint32_t yields; };            /* zeros at first */
/* A pause or a yield; false: the budget is spent. */
bool wait_turn(struct wait_turns *turns, const struct wait_budget *budget,
               const struct wait_ways *ways);

/* a wait ends early when either is not 0 */
struct wait_ends { const shared64 *verdict; const shared32 *news; };

/* 1: *word >= value (acquire: what was written before it may be read). 0: the budget is spent, or
 * an end was seen. */
int wait_spin(const shared64 *word, uint64_t value, struct wait_ends ends,
              const struct wait_budget *budget, const struct wait_ways *ways);

/* A yield only goes round among ranks that wait as well where all that share this CPU do. Then the
 * word is awaited from another CPU, for `ticks` before a yield, in a few of them. may(): now. */
struct wait_linger { uint64_t ticks; bool (*may)(void *arg); void *arg; };
int wait_spin_or_linger(const shared64 *word, uint64_t value, struct wait_ends ends,
                        const struct wait_budget *budget, const struct wait_ways *ways,
                        const struct wait_linger *linger);

#endif
