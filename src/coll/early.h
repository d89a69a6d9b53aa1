/* Job: let the one rank that takes, of two, copy out or fold what the other is still copying in.
 * Owns: this rank's words early, early_at, early_what.
 * Never: waits longer than a short spin; decides that an operation ends.
 *
 * In a broadcast one rank copies into its slot, then the other copies out of it; in a reduce it
 * folds. Each is idle while the other works. So a rank that gives says how much is there, if the
 * other has arrived by then; a rank that takes follows a chunk behind, between its arrival and its
 * look at the gate. Measured, 2 ranks on a Zen 4, 64 KiB: broadcast 5.9 us without and 4.9 with it,
 * reduce 3.8 and 2.9; gather and scatter, where the root copies a block of its own meanwhile, gain
 * nothing there. A scan or an exscan goes as a reduce does: rank 1 takes. On a Zen 5, near (40 ns)
 * and far (210), both at once with copies by one instruction (coll_copy): exscan of 16, 64, 96, 256
 * KiB near 0.89, 0.92, 0.84, 0.94 of the time, far 0.89, 0.77, 0.73, 0.93; scan near 0.87, 0.89,
 * 0.77, 0.97, far 0.98, 0.89, 0.85, 0.95. On a Zen 5 a gather gains, too, whose root arrives before
 * it copies its own block: 64, 96, 128, 192, 256 KiB, far (195 ns), 0.83, 0.85, 0.82, 0.89, 0.88 of
 * the time; back to back 0.98 to 1.02.
 *
 * The gate does not know of it: the rank that gives arrives when all is there, and what it gives is
 * taken anew from where this stopped. If it dies before, it never arrives. So only the buffer that
 * is taken into has changed when an operation fails.
 *
 * E122 early: a chunk of what a rank gives is in its slot, then early (release). The rank that
 *    takes loads early (acquire), then reads that chunk. The number of the operation stands in it,
 *    so an old one says nothing. The slot may be overwritten when it could be before: it is read
 *    between this rank's arrival at the operation and its end. */
#ifndef TUTTI_COLL_EARLY_H
#define TUTTI_COLL_EARLY_H

#include "coll/coll.h"

enum { EARLY_LEAST = TINY(16384, 128), EARLY_LEFT = 4 * EARLY_LEAST };
enum { EARLY_BITS = 16, EARLY_MOST = (1 << EARLY_BITS) - 1 };

/* The word: how many chunks of operation seq are there. */
static inline uint64_t early_word(uint64_t seq, uint64_t count)
{
    return seq << EARLY_BITS | count;
}
static inline uint64_t early_count(uint64_t word, uint64_t seq)
{
    return word >> EARLY_BITS == seq ? word & EARLY_MOST : 0;
}

/* Whether the ranks of this operation overlap: the same at both. */
bool early_may(const struct coll *c);
/* Before a rank arrives that takes: whether it will look for what is there. */
void early_expect(struct coll *c);
/* Copies all that this rank gives into its slot, and says so in between. */
void early_put(struct coll *c, char *slot, const char *from, size_t bytes);
/* After the arrival: takes what is there, as long as there is something: c->early bytes. */
void early_take(struct coll *c);

#endif
