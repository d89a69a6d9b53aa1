/* Job: copy into shared staging memory, with plain or with non-temporal stores, whichever is faster
 *      here (base/tuner).
 * Owns: nothing: the caller has the tuner.
 * Never: knows where the memory is read, and when.
 *
 * Staging memory lies in lines that peers have read before; each line has to be taken from them.
 * Measured on AMD's Zen 4, 64 KiB: 10 us if both share a cache, 38 us if they do not (1.2 us if no
 * other rank has read it). Past the caches it takes 2.4 us, but then it is read at the speed of
 * memory, 6 us instead of 2 to 5. So streaming has to save more than that difference: STAGED_LESS,
 * whatever the source costs. When it had to save three quarters instead, copies out of memory never
 * streamed: all_reduce of 16 MiB between CPUs far apart took 5.8 ms, and now takes 3.35. With more
 * ranks than CPUs a slot's reader changes its CPU, and so do its lines: the mean counts. By the
 * least of the recent costs, all_to_all of 1 MiB among 4 ranks on 2 CPUs far apart took 2.6 ms, by
 * the mean 1.4. */
#ifndef TUTTI_BASE_STAGED_H
#define TUTTI_BASE_STAGED_H

#include "base/clock.h"
#include "base/copy.h"
#include "base/tuner.h"

enum { STAGED_LEAST = 8 << 10, STAGED_LESS = 100 };  /* bytes; ns a KiB */

/* Whether this copy tells the tuner what it took, and whether it streams. */
struct staged { bool tries, streamed; };

/* less: STAGED_LESS in ticks. plain: copy_plain, or copy_by_loop. Where one instruction takes the
   lines over unread, streaming stores are not tried. */
static inline struct staged staged_choose(struct tuner *ways, uint64_t less, copy_fn *plain,
                                          size_t bytes)
{
    bool tries = COPY_STREAMS && bytes >= STAGED_LEAST
        && (plain != copy_plain || !copy_takes_over(bytes));
    return (struct staged){ tries, tries && tuner_choose_less(ways, less) };
}

static inline void staged_learn(struct tuner *ways, struct staged way, uint64_t ticks,
                                size_t bytes)
{
    if (way.tries)
        tuner_learn_mean(ways, way.streamed, ticks, bytes);
}

/* Returns the ticks that it took; 0 for a copy too small to be measured. */
static inline uint64_t staged_copy(struct tuner *ways, uint64_t less, copy_fn *plain, void *to,
                                   const void *from, size_t bytes)
{
    if (!COPY_STREAMS || bytes < STAGED_LEAST) {
        plain(to, from, bytes);
        return 0;
    }
    struct staged way = staged_choose(ways, less, plain, bytes);
    uint64_t began = clock_tick();
    (way.streamed ? copy_streaming : plain)(to, from, bytes);
    uint64_t ticks = clock_tick() - began;
    staged_learn(ways, way, ticks, bytes);
    return ticks;
}

#endif
