/* Job: let blocks change hands between two ranks in large operations: who has read a block writes
 *      there what it gives a few rounds later.
 * Owns: tutti_comm.coll.pipeline_swap; this rank's blocks, in its span.
 * Never: copies or folds (pipeline_move.c).
 *
 * A line that a peer has read is slow to write for its writer, and fast for the peer (coll/swap.h).
 * In round k each rank writes block k % DEPTH, of its own blocks or of the other's: the one that it
 * has read in round k - DEPTH. So a rank needs no word of the other to write, and all blocks stay
 * in the caches of both. An all_reduce goes so without sums in slots: each rank folds all. Measured
 * with bare copies and folds between two ranks of a Zen 4 far apart (160 ns), all_reduce by slots
 * of sums and so: 512 KiB 291 and 46 us, 1 MiB 606 and 132; near (34 ns) 26.6 and 28.9, 122 and
 * 125.
 *
 * An all_reduce between buffers in the arena may go so, too: between CPUs far apart a buffer that a
 * peer has read is slow to write for its owner. It has tries of its own, which begin in place. On a
 * Zen 5, far (200 ns), with the rewriting by their owners, 512, 768 KiB, 1, 1.5 MiB take 0.72,
 * 0.75, 0.81, 0.78 of the time; near it is not chosen.
 *
 * Both ranks must know before an operation whether it goes so. Each says in its arrival whether the
 * next one of the class may: its buffers are all private, or all lie in the arena, it has its
 * blocks, and, rank 0, it wants it, as tries in epochs have shown (coll/swap.c). If both say so,
 * the next one goes so, whatever its buffers are. But if a rank then comes with device memory, the
 * other sees it after the gate, and begins anew through its slots: before the gate it has said
 * nothing. Rounds are counted apart, and alike by both, so they agree who writes which block. */
#ifndef TUTTI_COLL_PIPELINE_SWAP_H
#define TUTTI_COLL_PIPELINE_SWAP_H

#include "coll/pipeline.h"

enum { PIPELINE_SWAP_DEPTH = TINY(4, 2), PIPELINE_SWAP_PIECE = PIPELINE_PIECE_MOST };

/* When an operation opens, of any kind: sets c->swap. May be called twice. */
void pipeline_swap_open(struct coll *c);
/* Before the arrival. c->sends is set; results: the same of the result, in an all_reduce. */
void pipeline_swap_publish(struct coll *c, struct place results);
/* After the gate; the rounds are known. False: blocks do not change hands after all. */
bool pipeline_swap_gate(struct coll *c);
/* Both with c->swap.on. True: the block of the next round may be written. */
bool pipeline_swap_free(const struct coll *c);
/* Where that rank's part of a round is. */
char *pipeline_swap_block(const struct coll *c, uint32_t writer, uint64_t round);
void pipeline_swap_learn(struct coll *c);            /* at the end */

#endif
