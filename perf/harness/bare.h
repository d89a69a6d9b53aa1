/* Job: barriers with nothing around them: no deaths, no deadlines, no checks, no report. What the
 *      hardware and the scheduler cost.
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
    struct bare_line turn[2][2];               /* of even and odd exchanges, each rank its own */
    struct bare_line mail[PERF_RANKS_MAX][BARE_STEPS];             /* each written by one partner */
    /* each word by one child of the rank */
    struct { _Alignas(128) shared64 child[4]; } arrived[PERF_RANKS_MAX];
    struct bare_line wake[PERF_RANKS_MAX];                         /* by the parent of the rank */
    _Alignas(128) pthread_barrier_t posix;
};

/* Every word only grows: `nth` is the number of the barrier, from 1, and stands where a textbook
 * has a sense. */

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

/* A line to another rank and back: rank 0 writes, rank 1 answers. */
static inline void bare_there_and_back(struct bare *b, int me, uint64_t nth)
{
    if (me == 0)
        store_release64(&b->flag[me].word, nth);
    bare_wait(&b->flag[!me].word, nth, false);
    if (me == 1)
        store_release64(&b->flag[me].word, nth);
}

static inline void bare_flags(struct bare *b, int me, int n, uint64_t nth, bool yields)
{
    store_release64(&b->flag[me].word, nth);
    for (int p = 0; p < n; p++)
        if (p != me)  /* to look at the own line costs a tenth: a peer may just be taking it away */
            bare_wait(&b->flag[p].word, nth, yields);
}

/* The central sense-reversing barrier. */
static inline void bare_central(struct bare *b, int n, uint64_t nth, bool yields)
{
    if (fetch_add64(&b->count.word, 1) + 1 == nth * (uint64_t)n)
        store_release64(&b->sense.word, nth);
    else
        bare_wait(&b->sense.word, nth, yields);
}

/* Hensgen, Finkel, Manber 1988. */
static inline void bare_dissemination(struct bare *b, int me, int n, uint64_t nth, bool yields)
{
    for (int step = 0, far = 1; far < n; step++, far *= 2) {
        store_release64(&b->mail[(me + far) % n][step].word, nth);
        bare_wait(&b->mail[me][step].word, nth, yields);
    }
}

/* Mellor-Crummey and Scott 1991: arrival up a tree of four, each rank's children in one line;
 * departure down a tree of two. */
static inline void bare_mcs(struct bare *b, int me, int n, uint64_t nth, bool yields)
{
    for (int k = 0; k < 4 && 4 * me + 1 + k < n; k++)
        bare_wait(&b->arrived[me].child[k], nth, yields);
    if (me) {
        store_release64(&b->arrived[(me - 1) / 4].child[(me - 1) % 4], nth);
        bare_wait(&b->wake[me].word, nth, yields);
    }
    for (int child = 2 * me + 1; child <= 2 * me + 2 && child < n; child++)
        store_release64(&b->wake[child].word, nth);
}

static inline void bare_prepare(struct bare *b, int n)
{
    pthread_barrierattr_t attr;
    pthread_barrierattr_init(&attr);
    pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&b->posix, &attr, (unsigned)n);
}

#endif
