/* Job: copy into shared staging memory, with plain or with non-temporal stores, whichever is faster
 *      here (base/tuner).
 * Owns: nothing: who copies has the tuner.
 * Never: where it is read, and when.
 *
 * What is staged lies in lines that peers have read before, and each of these has to be taken from
 * them. Measured on AMD's Zen 4, 64 KiB: 10 us where both share a cache, 38 us where they do not
 * (1.2 us where nobody else has read it); past the caches 2.4 us, but then it is read at the speed
 * of memory, 6 us instead of 2 to 5. So streaming has to save more than that, whatever the source
 * of the copy costs beside: STAGED_LESS. Where it had to save three quarters instead, copies out of
 * memory never did: all_reduce of 16 MiB between CPUs far apart took 5.8 ms, and now takes 3.35.
 * With more ranks than CPUs a slot's reader is now here, now there, and so its lines: the mean
 * counts. By the least of late, all_to_all of 1 MiB among 4 ranks on 2 CPUs far apart took 2.6 ms,
 * by the mean 1.4. */
#ifndef TUTTI_BASE_STAGED_H
#define TUTTI_BASE_STAGED_H

#include "base/clock.h"
#include "base/copy.h"
#include "base/tuner.h"

enum { STAGED_LEAST = 8 << 10, STAGED_LESS = 100 };  /* bytes; ns a KiB */

/* less: STAGED_LESS in ticks. How many ticks it took; 0 for what is too small to be asked about. */
static inline uint64_t staged_copy(struct tuner *ways, uint64_t less, void *to, const void *from,
                                   size_t bytes)
{
    if (!COPY_STREAMS || bytes < STAGED_LEAST) {
        copy_plain(to, from, bytes);
        return 0;
    }
    bool streamed = tuner_choose_less(ways, less);
    uint64_t began = clock_tick();
    if (streamed)
        copy_streaming(to, from, bytes);
    else
        copy_plain(to, from, bytes);
    uint64_t ticks = clock_tick() - began;
    tuner_learn_mean(ways, streamed, ticks, bytes);
    return ticks;
}

#endif
