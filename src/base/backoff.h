/* Job: the delay between a rank's own arrival and its first poll of its peers. It is
 *      tuned by trials.
 * Owns: nothing: each comm has one of these for each kind of operation that is short enough.
 * Never: anything a peer waits for. What is chosen here moves a look in time, by some cycles.
 *
 * A rank that looks while its peer's line is being written takes that line back too early, and it
 * has to travel once more; one that looks late has only lost time. When a line comes depends on the
 * processor, and on where the system has put the ranks, which it changes. Measured, on one machine
 * within minutes: a barrier took 34 ns by looking at once and 54 by waiting for 36 cycles, then 61
 * and 44. Two ranks disturb each other, so all of a comm go through the same trials at the same
 * operations: blocks of operations of one kind, back to back, the pauses in turn, the middle one of
 * each's five blocks counts; what is best for a barrier is not so for one that carries something.
 * (With a pause that is a little off, two ranks fall in and out of step. Measured on the Zen 4:
 * when the fastest block counted, one pause was chosen for all_reduce that had it in 40 ns for a
 * block now and then and in 60 otherwise; in the middle there is none below 46.)
 *
 * Operations that come alone say nothing: what passes from one to the next is the program's time.
 * Where all do, the pause is the usual one again from the next trial on. */
#ifndef TUTTI_BASE_BACKOFF_H
#define TUTTI_BASE_BACKOFF_H

#include <stdbool.h>
#include <stdint.h>

/* BACKOFF_BLOCK operations with one pause; BACKOFF_PERIOD blocks from trial to trial.
   A block of more than BACKOFF_SLOW ticks an operation does not count. */
enum { BACKOFF_BLOCK = 64, BACKOFF_ARMS = 9, BACKOFF_PASSES = 5, BACKOFF_PERIOD = 1024,
       BACKOFF_SLOW = 4096 };

/* All zeros: nothing is known, the usual pause. */
struct backoff {
    int32_t less;                      /* cycles that a pause is shorter than the usual one now */
    uint32_t arm, chosen;              /* of now; of what was best in the last trial */
    uint64_t since, seq;               /* as the last block ended */
    /* of the blocks of this trial that count, the fastest first; 0: no more */
    uint32_t ticks[BACKOFF_ARMS][BACKOFF_PASSES];
};

/* The pause, where the usual one is so long. */
static inline uint32_t backoff_steps(const struct backoff *s, uint32_t usual)
{
    int32_t steps = (int32_t)usual - s->less;
    return steps > 0 ? (uint32_t)steps : 0;
}

/* Operation seq, the last of a block, has arrived at `tick`; `calls`: how many of its kind there
   were, by which trials are counted, so that each kind has its own, whatever comes between. A block
   in which there were others, or long gaps, does not count. */
void backoff_block(struct backoff *s, uint64_t seq, uint64_t tick, uint64_t calls);

static inline bool backoff_due(uint64_t calls)
{
    return __builtin_expect(calls % BACKOFF_BLOCK == 0, 0);
}

#endif
