/* Job: which of two ways is the faster one here? Found out by going both.
 * Owns: nothing: who has the choice has one of these, or a row of them, one for each class of sizes.
 * Never: anything that a peer could notice: each rank chooses for itself.
 *
 * Each tries both in turn, four times, and then keeps to the one that cost less; the other gets another try every 64 times. Systems move
 * processes about, and what is cold depends on the program: so what was measured fades, a cost is the least of late, and grows by an eighth
 * with each time that took longer. Tries of what takes several times as long are dear: after two it gets no more of the first ones, and behind
 * the next as much more seldom, eight times at most: so they cost a 64th of the time, up to there. Measured, messages of 1 MiB where the system needs 1.7 ms to read
 * them out of the sender's memory and a stage 0.13: tries every 64 times were a fifth of the time.
 *
 * Results of large operations: plain stores, or past the caches. Measured, 16 MiB between cold buffers takes 2.0 ms with plain stores, 1.4 ms
 * with streaming ones, on one processor; on others they lost at every size.
 *
 * A fold into what is staged takes these lines one by one with its own stores. Folded into blocks of the first cache and copied from there, they are
 * taken over unread, by an instruction of the C library's copy. Measured, all_reduce of 256 KiB, 2 ranks: on a Zen 5, CPUs far apart, 27 us by its
 * own stores and 19 by blocks; on the Zen 4, near, 15 and 16. Or the blocks go past the caches, as copies do (base/staged.h).
 *
 * Large messages: by a stage, or out of the sender's private memory. */
#ifndef TUTTI_BASE_EITHER_H
#define TUTTI_BASE_EITHER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Ticks a KiB of late, the first way's and the second's. All zeros: nothing is known. */
struct either { uint64_t cost[2]; uint32_t n; };

enum { EITHER_CLASSES = 16, EITHER_TRIES = 8, EITHER_AGAIN = 64, EITHER_SOON = EITHER_AGAIN - 4 };
enum { EITHER_LEAST = 4, EITHER_DEAR = 4, EITHER_SELDOM = 8 };         /* tries of both before one may be too dear; times as long; the most seldom */
enum { STREAM_LEAST = 1 << 20 };

/* The class of so many bytes: doublings of `least`. NULL: fewer are not worth a thought. One that nothing is known of believes what the next below
   that has found something has found, and tries the other after a few: tries of large operations are dear. */
static inline struct either *either_of(struct either classes[EITHER_CLASSES], size_t bytes, size_t least)
{
    if (bytes < least)
        return NULL;
    int class = 63 - __builtin_clzll((unsigned long long)(bytes / least));
    struct either *e = &classes[class < EITHER_CLASSES ? class : EITHER_CLASSES - 1];
    for (const struct either *below = e; e->n == 0 && below-- > classes;)
        if (below->n >= EITHER_TRIES)
            *e = (struct either){ { below->cost[0], below->cost[1] }, EITHER_SOON };
    return e;
}

/* How many times as long as the other this way takes, 1 to EITHER_SELDOM. */
static inline uint64_t either_dear(const struct either *e, bool second)
{
    uint64_t times = e->cost[!second] ? e->cost[second] / e->cost[!second] : 1;
    return times < 1 ? 1 : times < EITHER_SELDOM ? times : EITHER_SELDOM;
}

/* Which way this time, true: the second. So far the second is the better one, or not. */
static inline bool either_turn(struct either *e, bool second)
{
    uint32_t n = e->n++;
    bool turn = n & 1;
    if (n < EITHER_TRIES)
        return n >= EITHER_LEAST && either_dear(e, turn) >= EITHER_DEAR ? !turn : turn;
    if (n % EITHER_AGAIN)
        return second;
    uint64_t dear = either_dear(e, !second);
    return n / EITHER_AGAIN % dear == 1 % dear ? !second : second;
}

/* The second has to be `worth` times as fast as the first; or to take so many ticks a KiB less. */
static inline bool either_choose(struct either *e, unsigned worth) { return either_turn(e, e->cost[1] * worth < e->cost[0]); }
static inline bool either_choose_less(struct either *e, uint64_t less) { return either_turn(e, e->cost[1] + less < e->cost[0]); }

/* What it took. */
static inline void either_learn(struct either *e, bool second, uint64_t ticks, size_t bytes)
{
    uint64_t now = ticks * 1024 / bytes + 1, *cost = &e->cost[second], faded = *cost + *cost / 8 + 1;
    *cost = *cost == 0 || now < faded ? now : faded;
}

/* The same where a way takes now this long and now that, as with ranks that share CPUs, and what counts is what it takes on the whole. What takes
   more than four times as long was held up. */
static inline void either_learn_mean(struct either *e, bool second, uint64_t ticks, size_t bytes)
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
