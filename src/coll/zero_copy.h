/* Job: choose between zero-copy (peers read the caller's buffer) and staging through this rank's
 *      pipeline, by cost (base/tuner).
 * Owns: tutti_comm.coll.zero_copy.
 * Never: finds out whether peers can read a buffer in place (cma.c, group/place); reads one.
 *
 * Each rank chooses for itself: peers use what it publishes. But the choice changes the peers'
 * work, so the cost is the time of the whole operation, from this rank's call until it needs
 * nothing of any rank: what peers read out of its buffer counts, too. Ranks measure nearly the same
 * time, and so choose the same.
 *
 * First use: a scatter whose root gives out of private memory, with more ranks than CPUs. Each byte
 * is for one rank only, so the pipeline adds a whole copy, which the root makes while the others
 * wait for a turn. Measured, 2 CPUs of a Zen 4 near each other, by the pipeline and out of the
 * root's memory: 8 ranks, 1 MiB 1.1 -> 0.73 ms; 4 ranks, 1 MiB 320 -> 232 us. Below that both are
 * equal, and zero-copy makes all ranks stay for each other, which a root with its buffer in the
 * arena does not need. On other machines the system takes twenty times as long to read a peer's
 * memory. On a Zen 5 lending takes up to twice as long where the readers share a CPU.
 *
 * Second use: the part of an all_reduce that a rank has folded, if all buffers lie in the arena.
 * Peers take it out of the receive buffer, in large pieces; or out of a pipeline, where it is still
 * in a cache. Measured, 2 ranks on the same machine: 256 MiB 36 -> 33 ms (where memcpy takes 24),
 * 64 MiB 9.0 -> 8.2, 4 MiB the same, 1 MiB 112 -> 125 us; 4 ranks on 2 CPUs lose. */
#ifndef TUTTI_COLL_ZERO_COPY_H
#define TUTTI_COLL_ZERO_COPY_H

#include "coll/coll.h"

#include "base/tiny.h"

enum { ZERO_COPY_SENDS_LEAST = TINY(1 << 20, 64), ZERO_COPY_RESULTS_LEAST = TINY(4 << 20, 64) };

/* Called before the arrival, for one of comm.zero_copy's rows. True: by the pipeline. False:
 * zero-copy, or there is no choice (NULL, or fewer bytes than `least`). */
bool zero_copy_choose(struct coll *c, struct tuner *classes, size_t bytes, size_t least);
void zero_copy_learn(struct coll *c);                /* called at its end */

#endif
