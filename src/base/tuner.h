/* Job: choose the faster of two ways by their measured costs. Both are tried now and then.
 * Owns: nothing: each user has one of these, or a row of them, one for each class of sizes.
 * Never: changes anything that a peer could notice: each rank chooses for itself.
 *
 * A rank tries both ways in turn, four times each, and then keeps to the cheaper one. The other
 * gets another try every 64 times, because the system moves processes, and the program decides what
 * is cold. So old costs fade: a cost is the least of the recent ones, and grows by an eighth with
 * each time that took longer. A way that takes several times as long costs much to try: after two
 * of the first four tries it gets no more of them, and its later tries come as many times more
 * seldom, eight times at most. So tries cost a 64th of the time, up to that factor. Measured,
 * messages of 1 MiB on a system that needs 1.7 ms to read them out of the sender's memory, and 0.13
 * by a stage: tries every 64 times were a fifth of the time.
 *
 * Results of large operations: plain stores, or past the caches. Measured, 16 MiB between cold
 * buffers: on one processor 2.0 ms with plain stores, 1.4 ms with streaming ones; on others
 * streaming was slower at every size.
 *
 * A fold into staging takes the lines from the peers one by one with its own stores. If it folds
 * into blocks of the first-level cache and copies them from there, an instruction of the C
 * library's copy takes the lines over unread. Measured, all_reduce of 256 KiB, 2 ranks: on a Zen 5,
 * CPUs far apart, 27 us by the fold's own stores and 19 by blocks; on the Zen 4, near, 15 and 16.
 * Or the blocks go past the caches, as copies do (base/staged.h).
 *
 * Large messages: by a stage, or out of the sender's private memory. */
#ifndef TUTTI_BASE_TUNER_H
#define TUTTI_BASE_TUNER_H

#include "base/tiny.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Recent ticks a KiB of the first and the second way. All zeros: nothing is known. */
struct tuner { uint64_t cost[2]; uint32_t n; };

enum { TUNER_CLASSES = 16, TUNER_TRIES = 8, TUNER_AGAIN = 64, TUNER_SOON = TUNER_AGAIN - 4 };
/* tries of both before one may be too dear; how many times as long that is; the most seldom */
enum { TUNER_LEAST = 4, TUNER_DEAR = 4, TUNER_SELDOM = 8 };
enum { STREAM_LEAST = TINY(1 << 20, 64) };

/* The class of `bytes`: doublings of `least`. NULL: too few bytes to choose. A class without
   measurements takes over the costs of the nearest class below that has some, and tries the other
   way after a few times: tries of large operations are dear. */
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

/* True: at this time the worse one gets its try, second: the better one so far. */
static inline bool tuner_again(const struct tuner *e, uint32_t n, bool second)
{
    uint64_t dear = tuner_dear(e, !second);
    return n / TUNER_AGAIN % dear == 1 % dear;
}

/* The way for this time; true: the second. second: it is the better one so far. */
static inline bool tuner_turn(struct tuner *e, bool second)
{
    uint32_t n = e->n++;
    bool turn = n & 1;
    if (n < TUNER_TRIES)
        return n >= TUNER_LEAST && tuner_dear(e, turn) >= TUNER_DEAR ? !turn : turn;
    return n % TUNER_AGAIN == 0 && tuner_again(e, n, second) ? !second : second;
}

/* The second way has to be `worth` times as fast as the first; or to take `less` ticks a KiB
   less. */
static inline bool tuner_choose(struct tuner *e, unsigned worth)
{
    return tuner_turn(e, e->cost[1] * worth < e->cost[0]);
}

static inline bool tuner_choose_less(struct tuner *e, uint64_t less)
{
    return tuner_turn(e, e->cost[1] + less < e->cost[0]);
}

/* For ranks that choose equally often, where the way of one costs the other one, too: of 64 times
   all go the first way in the first one, and the second way in the next. At first, too, each way
   is tried once. */
static inline bool tuner_choose_together(struct tuner *e)
{
    uint32_t n = e->n++, at = n % TUNER_AGAIN;
    bool second = e->cost[1] < e->cost[0];
    return at == !second && tuner_again(e, n, second) ? !second : second;
}

/* After it. True: what this time costs counts, as all ranks may go this way. */
static inline bool tuner_is_together(const struct tuner *e)
{
    return (e->n - 1) % TUNER_AGAIN <= 1;
}

/* True: this time's cost tells most: a first try, a later one, or the first after that. */
static inline bool tuner_asks(const struct tuner *e)
{
    return e->n <= TUNER_TRIES || e->n % TUNER_AGAIN <= 1;
}

/* Notes what it took. */
static inline void tuner_learn(struct tuner *e, bool second, uint64_t ticks, size_t bytes)
{
    uint64_t now = ticks * 1024 / bytes + 1, *cost = &e->cost[second],
             faded = *cost + *cost / 8 + 1;
    *cost = *cost == 0 || now < faded ? now : faded;
}

/* The same for a way whose times vary, as with ranks that share CPUs: the mean counts. A time of
   more than four times the mean counts as four times: it was held up. */
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
