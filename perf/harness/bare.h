/* Job: barriers with nothing around them: no deaths, no deadlines, no checks, no report. What the hardware and the scheduler cost.
 * Owns: struct bare, in memory shared by forked ranks, zero at birth.
 * Never: anything a program could rely on: a rank that dies leaves the others waiting for ever. */
#ifndef PERF_BARE_H
#define PERF_BARE_H

#include "base/atomic.h"
#include "harness/options.h"

#include <pthread.h>
#include <sched.h>

enum { BARE_STEPS = 6 };                   /* of dissemination: 2^6 ranks */

struct bare_line { _Alignas(128) shared64 word; };

struct bare {
    struct bare_line flag[PERF_RANKS_MAX];                         /* each rank its own */
    struct bare_line count, sense;
    struct bare_line mail[PERF_RANKS_MAX][BARE_STEPS];             /* each written by one partner */
    _Alignas(128) pthread_barrier_t posix;
};

/* Every word only grows: `nth` is the number of the barrier, from 1, and stands where a textbook has a sense. */

/* Two ranks, two stores, two loads: the floor of every barrier. */
static inline void bare_exchange(struct bare *b, int me, uint64_t nth)
{
    store_release64(&b->flag[me].word, nth);
    while (load_acquire64(&b->flag[!me].word) < nth)
        cpu_pause();
}

static inline void bare_wait(const shared64 *word, uint64_t nth, bool yields)
{
    while (load_acquire64(word) < nth)
        if (yields)
            sched_yield();
        else
            cpu_pause();
}

static inline void bare_flags(struct bare *b, int me, int n, uint64_t nth, bool yields)
{
    store_release64(&b->flag[me].word, nth);
    for (int p = 0; p < n; p++)
        if (p != me)                       /* to look at the own line costs a tenth: a peer may just be taking it away */
            bare_wait(&b->flag[p].word, nth, yields);
}

/* The central sense-reversing barrier; its ranks yield while they wait. */
static inline void bare_central(struct bare *b, int n, uint64_t nth)
{
    if (fetch_add64(&b->count.word, 1) + 1 == nth * (uint64_t)n)
        store_release64(&b->sense.word, nth);
    else
        bare_wait(&b->sense.word, nth, true);
}

static inline void bare_dissemination(struct bare *b, int me, int n, uint64_t nth)
{
    for (int step = 0, far = 1; far < n; step++, far *= 2) {
        store_release64(&b->mail[(me + far) % n][step].word, nth);
        bare_wait(&b->mail[me][step].word, nth, true);
    }
}

#endif
