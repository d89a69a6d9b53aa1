/* Job: are large results better written past the caches? Found out by doing both.
 * Owns: nothing: who copies has a row of these.
 * Never: anything that a peer could notice: each rank chooses for itself.
 *
 * Measured, a plain copy of 16 MiB between cold buffers takes 2.0 ms with plain stores, 1.4 ms with streaming ones, on one processor; on others
 * they lost at every size. So each size class tries both in turn, four times, and then keeps to the one whose fastest was faster per byte;
 * the other gets another try every 64 times, since what is cold depends on the program. */
#ifndef TUTTI_BASE_STREAMS_H
#define TUTTI_BASE_STREAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/copy.h"

enum { STREAM_CLASSES = 16, STREAM_LEAST = 1 << 20 };

/* Of one size class: ticks a KiB at best, with plain and with streaming stores. */
struct streams { uint64_t best[2]; uint32_t n; };

/* The class of so many bytes; NULL: streaming is not worth a thought. */
static inline struct streams *streams_of(struct streams classes[STREAM_CLASSES], size_t bytes)
{
    if (!COPY_STREAMS || bytes < STREAM_LEAST)
        return NULL;
    int class = 63 - __builtin_clzll((unsigned long long)bytes / STREAM_LEAST);
    return &classes[class < STREAM_CLASSES ? class : STREAM_CLASSES - 1];
}

/* Which stores this time: true, streaming ones. */
static inline bool streams_choose(struct streams *s)
{
    enum { TRIES = 8, AGAIN = 64 };
    uint32_t n = s->n++;
    bool better = s->best[1] < s->best[0];
    return n < TRIES ? n & 1 : n % AGAIN ? better : !better;
}

/* What it took. */
static inline void streams_learn(struct streams *s, bool streamed, uint64_t ticks, size_t bytes)
{
    uint64_t cost = ticks * 1024 / bytes + 1, *best = &s->best[streamed];
    if (*best == 0 || cost < *best)
        *best = cost;
}

#endif
