/* Job: collectives and messages of two ranks, each with a CPU of its own, with nothing around them:
 *      the two copies that each byte takes through shared memory, or a copy and a fold, and flags.
 *      And ping-pongs of several pairs, which yield where they have less than a CPU each.
 * Owns: words and blocks in r->shared, zero at birth.
 * Never: notices a death or a mistake, sleeps. */
#ifndef PERF_BARE_PAIRS_H
#define PERF_BARE_PAIRS_H

#include "harness/job.h"

/* Of r->shared. Of more than two ranks behind what bare_shapes.h has there. */
size_t bare_pairs_bytes(int ranks);

/* Every collective but the barrier, sendrecv and ping-pong; r->op says which, r->size is 2, of a
   ping-pong any. Of a collective nobody's result is written, and nobody is through, before both
   have come: all or none.
   bare_pairs_whole   in one piece, up to BARE_WHOLE_MOST bytes; a few bytes stand beside the flag
   bare_pairs_fine    in pieces of 8 KiB, so that one rank copies out while the other copies in
   bare_pairs_coarse  in pieces of 32 KiB
   bare_pairs_out     the same, and results go past the caches
   bare_pairs_past    in pieces of 64 KiB, in past the caches, and from BARE_OUT_LEAST bytes on out
   Below its least a form is slower than another one. */
enum {
    BARE_WHOLE_MOST = 512 << 10, BARE_FINE_LEAST = 12 << 10, BARE_COARSE_LEAST = 64 << 10,
    BARE_OUT_LEAST = 1 << 20, BARE_PAIRS_PAST_LEAST = 4 << 10
};
int bare_pairs_whole(struct rank *r, uint64_t times);
int bare_pairs_fine(struct rank *r, uint64_t times);
int bare_pairs_coarse(struct rank *r, uint64_t times);
int bare_pairs_out(struct rank *r, uint64_t times);
int bare_pairs_past(struct rank *r, uint64_t times);

#endif
