/* Job: choose between zero-copy (peers read the caller's buffer) and staging through this rank's
 *      pipeline, by cost (base/tuner).
 * Owns: tutti_comm.coll.zero_copy.
 * Never: whether peers can read it where it lies (cma.c, group/place); how they read it.
 *
 * It is this rank's own choice: peers go by what it publishes. But their work is what changes, so
 * what counts is how long the operation takes, from this rank's call to where it needs nothing of
 * anybody any more. Ranks measure nearly the same, and so come to the same.
 *
 * What a scatter's root gives out of private memory, with more ranks than CPUs. Each byte is for
 * one rank alone, so that the pipeline's copy is a whole one more, made by the root while the
 * others wait for a turn. Measured, 2 CPUs of a Zen 4 near each other, by the pipeline and out of
 * the root's memory: 8 ranks, 1 MiB 1.1 -> 0.73 ms; 4 ranks, 1 MiB 320 -> 232 us; less than that is
 * even, and all ranks stay for each other, which a root with its buffer in the arena need not ask
 * for. On other machines the system takes twenty times as long to read a peer's memory.
 *
 * What a rank has folded of an all_reduce whose buffers lie in the arena. Peers take it out of the
 * receive buffer, and then go by large pieces; or out of a pipeline, where it is still in a cache.
 * Measured, 2 ranks on the same machine: 256 MiB 36 -> 33 ms (where memcpy takes 24), 64 MiB 9.0 ->
 * 8.2, 4 MiB the same, 1 MiB 112 -> 125 us; 4 ranks on 2 CPUs lose. */
#ifndef TUTTI_COLL_ZERO_COPY_H
#define TUTTI_COLL_ZERO_COPY_H

#include "coll/coll.h"

#include "base/tiny.h"

enum { ZERO_COPY_SENDS_LEAST = TINY(1 << 20, 64), ZERO_COPY_RESULTS_LEAST = TINY(4 << 20, 64) };

/* Before the arrival, for one of comm.zero_copy's rows: true, by the pipeline. Fewer bytes than
 * `least`, and where there is no choice: NULL, and false. */
bool zero_copy_choose(struct coll *c, struct tuner *classes, size_t bytes, size_t least);
void zero_copy_learn(struct coll *c);                /* at its end */

#endif
