/* Job: how long after its arrival should a rank look for its peers? Found out by trying.
 * Owns: nothing: each comm has one of these for each kind of operation that is short enough.
 * Never: anything a peer waits for. What is chosen here moves a look in time, by some cycles.
 *
 * A rank that looks while its peer's line is being written takes that line back too early, and it has to travel once more; one that looks late has
 * only lost time. When a line comes depends on the processor, and on where the system has put the ranks, which it changes. Measured, on one
 * machine within minutes: a barrier took 34 ns by looking at once and 54 by waiting for 36 cycles, then 61 and 44. Two ranks disturb each other,
 * so all of a comm go through the same trials at the same operations: blocks of operations of one kind, back to back, the pauses in turn,
 * the fastest block of each counts; what is best for a barrier is not so for one that carries something. Where operations are not back to back,
 * what is chosen does not matter. */
#ifndef TUTTI_BASE_SETTLE_H
#define TUTTI_BASE_SETTLE_H

#include <stdint.h>

/* SETTLE_BLOCK operations with one pause; SETTLE_PERIOD blocks from trial to trial. */
enum { SETTLE_BLOCK = 64, SETTLE_ARMS = 7, SETTLE_PASSES = 4, SETTLE_PERIOD = 1024 };

/* All zeros: nothing is known, the usual pause. */
struct settle {
    int32_t less;                      /* cycles that a pause is shorter than the usual one now */
    uint32_t arm, chosen;              /* of now; of what was best in the last trial */
    uint64_t since, calls;             /* as the last block ended */
    uint64_t least[SETTLE_ARMS];       /* ticks of a block in this trial; 0: none that counts */
};

/* The pause, where the usual one is so long. */
static inline uint32_t settle_steps(const struct settle *s, uint32_t usual)
{
    int32_t steps = (int32_t)usual - s->less;
    return steps > 0 ? (uint32_t)steps : 0;
}

/* Operation seq, the last of a block, has arrived at `tick`; `calls`: how many of its kind there were. A block in which there were others
   does not count. */
void settle_block(struct settle *s, uint64_t seq, uint64_t tick, uint64_t calls);
static inline void settle_learn(struct settle *s, uint64_t seq, uint64_t tick, uint64_t calls)
{
    if (__builtin_expect(seq % SETTLE_BLOCK == 0, 0))
        settle_block(s, seq, tick, calls);
}

#endif
