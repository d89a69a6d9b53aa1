/* Job: tune the delay between a rank's own arrival and its first poll of its peers, by trials.
 * Owns: nothing: each comm has one of these for each short kind of operation.
 * Never: changes anything a peer waits for. The delay only moves a poll in time, by some cycles.
 *
 * A rank that polls while its peer's line is being written takes that line away too early, and the
 * line has to travel once more. A rank that polls late only loses time. When a line comes depends
 * on the processor, and on where the system has put the ranks, which it changes. Measured, on one
 * machine within minutes: a barrier took 34 ns with a poll at once and 54 with a delay of 36
 * cycles, then 61 and 44. Two ranks disturb each other, so all ranks of a comm make the same trials
 * at the same operations. A trial is blocks of operations of one kind, back to back, the delays in
 * turn; of the five blocks of each delay the middle one counts. The best delay for a barrier is not
 * the best one for an operation with data. (With a delay that is a little off, two ranks fall in
 * and out of step. Measured on the Zen 4: when the fastest block counted, all_reduce got a delay
 * that took 40 ns in a block now and then and 60 otherwise; by the middle block none is below 46.)
 * The longest delay is for CPUs far apart. There one of 240 to 280 cycles lets each line travel
 * once: on a Zen 5 a barrier takes 177 ns with it, and 230 with any below 150.
 *
 * Operations with long gaps between them do not count: the time between two is the program's. The
 * delay is the usual one behind a block of them. If all have gaps, it is so from the next trial
 * on. */
#ifndef TUTTI_BASE_BACKOFF_H
#define TUTTI_BASE_BACKOFF_H

#include <stdbool.h>
#include <stdint.h>

/* BACKOFF_BLOCK operations with one delay; BACKOFF_PERIOD blocks from trial to trial. A block of
   more than BACKOFF_SLOW ticks an operation does not count. */
enum { BACKOFF_BLOCK = 64, BACKOFF_ARMS = 10, BACKOFF_PASSES = 5, BACKOFF_PERIOD = 1024,
       BACKOFF_SLOW = 4096 };

/* All zeros: nothing is known, the usual delay. */
struct backoff {
    int32_t less;                  /* cycles by which the delay is now shorter than the usual one */
    uint32_t arm, chosen;              /* the current one; the best one of the last trial */
    uint64_t since, seq;               /* the tick and operation at which the last block ended */
    /* of the blocks of this trial that count, the fastest first; 0: no more */
    uint32_t ticks[BACKOFF_ARMS][BACKOFF_PASSES];
};

/* The delay, if the usual one is `usual`. */
static inline uint32_t backoff_steps(const struct backoff *s, uint32_t usual)
{
    int32_t steps = (int32_t)usual - s->less;
    return steps > 0 ? (uint32_t)steps : 0;
}

/* Operation seq, the last of a block, has arrived at `tick`. calls: the number of calls of its
   kind; trials are counted by it, so that each kind has its own, whatever comes between. A block
   with other operations in it, or long gaps, does not count. */
void backoff_block(struct backoff *s, uint64_t seq, uint64_t tick, uint64_t calls);

static inline bool backoff_due(uint64_t calls)
{
    return __builtin_expect(calls % BACKOFF_BLOCK == 0, 0);
}

#endif
