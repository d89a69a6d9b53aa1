/* Job: choose the faster of two ways by their measured costs. Both are tried now and then.
 * Owns: nothing: who has the choice has one of these, or a row of them, one for each
 *       class of sizes.
 * Never: anything that a peer could notice: each rank chooses for itself.
 *
 * Each tries both in turn, four times, and then keeps to the one that cost less; the other gets
 * another try every 64 times. Systems move processes about, and what is cold depends on the
 * program: so what was measured fades, a cost is the least of late, and grows by an eighth with
 * each time that took longer. Tries of what takes several times as long are dear: after two it
 * gets no more of the first ones, and behind the next as much more seldom, eight times at most: so
 * they cost a 64th of the time, up to there. Measured, messages of 1 MiB where the system needs
 * 1.7 ms to read them out of the sender's memory and a stage 0.13: tries every 64 times were a
 * fifth of the time.
 *
 * Results of large operations: plain stores, or past the caches. Measured, 16 MiB between cold
 * buffers takes 2.0 ms with plain stores, 1.4 ms with streaming ones, on one processor; on others
 * they lost at every size.
 *
 * A fold into what is staged takes these lines one by one with its own stores. Folded into blocks
 * of the first cache and copied from there, they are taken over unread, by an instruction of the C
 * library's copy. Measured, all_reduce of 256 KiB, 2 ranks: on a Zen 5, CPUs far apart, 27 us by
 * its own stores and 19 by blocks; on the Zen 4, near, 15 and 16. Or the blocks go past the caches,
 * as copies do (base/staged.h).
 *
 * Large messages: by a stage, or out of the sender's private memory. */
#ifndef TUTTI_BASE_TUNER_H
#define TUTTI_BASE_TUNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Ticks a KiB of late, the first way's and the second's. All zeros: nothing is known. */
struct tuner { uint64_t cost[2]; uint32_t n; };

enum { TUNER_CLASSES = 16, TUNER_TRIES = 8, TUNER_AGAIN = 64, TUNER_SOON = TUNER_AGAIN - 4 };
/* tries of both before one may be too dear; times as long; the most seldom */
enum { TUNER_LEAST = 4, TUNER_DEAR = 4, TUNER_SELDOM = 8 };
enum { STREAM_LEAST = 1 << 20 };

/* The class of so many bytes: doublings of `least`. NULL: fewer are not worth a thought. One that
   nothing is known of believes what the next below that has found something has found, and tries
   the other after a few: tries of large operations are dear. */
static inline struct tuner *tuner_of(struct tuner classes[TUNER_CLASSES], size_t bytes,
                                     size_t least)
{
    if (bytes < least)
        return NULL;
    int class = 63 - __builtin_clzll((unsigned long long)(bytes / least));
    struct tuner *e = &classes[class < TUNER_CLASSES ? class : TUNER_CLASSES - 1];
    for (const struct tuner *below = e; e->n == 0 && below-- > classes;)
        if (below->n >= TUNER_TRIES)
            *e = (struct tuner){ { below->cost[0], below->cost[1] }, TUNER_SOON };
    return e;
}

/* How many times as long as the other this way takes, 1 to TUNER_SELDOM. */
static inline uint64_t tuner_dear(const struct tuner *e, bool second)
{
    uint64_t times = e->cost[!second] ? e->cost[second] / e->cost[!second] : 1;
    return times < 1 ? 1 : times < TUNER_SELDOM ? times : TUNER_SELDOM;
}

/* Which way this time, true: the second. So far the second is the better one, or not. */
static inline bool tuner_turn(struct tuner *e, bool second)
{
    uint32_t n = e->n++;
    bool turn = n & 1;
    if (n < TUNER_TRIES)
        return n >= TUNER_LEAST && tuner_dear(e, turn) >= TUNER_DEAR ? !turn : turn;
    if (n % TUNER_AGAIN)
        return second;
    uint64_t dear = tuner_dear(e, !second);
    return n / TUNER_AGAIN % dear == 1 % dear ? !second : second;
}

/* The second has to be `worth` times as fast as the first; or to take so many ticks a KiB less. */
static inline bool tuner_choose(struct tuner *e, unsigned worth)
{
    return tuner_turn(e, e->cost[1] * worth < e->cost[0]);
}

static inline bool tuner_choose_less(struct tuner *e, uint64_t less)
{
    return tuner_turn(e, e->cost[1] + less < e->cost[0]);
}

/* What it took. */
static inline void tuner_learn(struct tuner *e, bool second, uint64_t ticks, size_t bytes)
{
    uint64_t now = ticks * 1024 / bytes + 1, *cost = &e->cost[second],
             faded = *cost + *cost / 8 + 1;
    *cost = *cost == 0 || now < faded ? now : faded;
}

/* The same where a way takes now this long and now that, as with ranks that share CPUs, and what
   counts is what it takes on the whole. What takes more than four times as long was held up. */
static inline void tuner_learn_mean(struct tuner *e, bool second, uint64_t ticks, size_t bytes)
{
    uint64_t now = ticks * 1024 / bytes + 1, *cost = &e->cost[second];
    if (*cost == 0)
        *cost = now;
    else if (now < *cost)
        *cost -= (*cost - now) / 4;
    else
        *cost += ((now < 4 * *cost ? now : 4 * *cost) - *cost) / 8;
}

#endif
