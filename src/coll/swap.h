/* Job: let two ranks hand blocks of staging to each other: who has read a block writes the next
 *      contribution there.
 * Owns: tutti_comm.coll.swap; this rank's block, in its span.
 * Never: writes a block that the other rank may read.
 *
 * A line that a peer has read is slow to write for its writer, since the peer has to give it up. On
 * AMD's Zen 4 the peer itself writes it at a fraction of that: its copy is there already. Measured
 * with bare copies, 2 ranks that write 64 KiB each and then read the other's: near 2.8 us by two
 * blocks that change hands, 3.4 in turns through 2 MiB, 9.0 through one block each; CPUs far apart
 * 5.2, 30 and 33. On a Xeon 12.9, 8.6 and 12.9. So rank 0 tries both ways when the ring in which
 * slots take turns is whole. Until then blocks change hands. A contribution that has no place in
 * the ring would have a slot of its parity, which is no faster anywhere: its block always does.
 *
 * Each kind has its tries, and each doubling of its sizes: a KiB of one costs several times what
 * one of another does. When all shared them, all_gather of 256 KiB by blocks was compared with
 * all_to_all of 4 KiB by slots. So all_to_all of 16 KiB went by slots, 1.33 us on a Zen 5 near,
 * where blocks take 0.72.
 *
 * In an operation in which both ranks give the same amount, and read all of the other's, both may
 * publish a block that changes hands. Both see whether both did. If so, each owns the block that
 * the other has published, when it has read it. If not, none changes its owner, and a block that
 * was published is not written in the next operation, in which the other may still read it. A block
 * that is not published is not read by anybody. So the words need no order but that of E1. */
#ifndef TUTTI_COLL_SWAP_H
#define TUTTI_COLL_SWAP_H

#include "coll/coll.h"

/* Bytes that the other rank reads. Of fewer a contribution has a slot of its parity: 1 KiB of
   all_reduce took 1.47 times as long by blocks. From contributions of SWAP_TRIED on both ways are
   tried. The largest that is eager fits into a block. */
enum {
    SWAP_LEAST = TINY(2048, 128),
    SWAP_TRIED = TINY(EAGER_TURNS, 256),
    SWAP_ROOM = EAGER_TWO_BYTES
};

/* True: blocks may change hands in this comm. */
static inline bool swap_here(const struct tutti_comm *comm)
{
    return comm->watch.size == 2 && !comm->crowded && !comm->coll.devices;
}
/* Which of the kinds in which they may; -1: none. */
int swap_row(enum kind kind);
/* True: they may in this operation, as far as this rank knows. */
bool swap_may(const struct coll *c);
/* The block for `bytes` bytes of this operation, populated. NULL: none is to be used, or there is
   no memory: it goes another way. */
char *swap_block(struct coll *c, size_t bytes);
/* After coll_publish, in each operation in which they may. block: what swap_block gave, or
   NULL. */
void swap_publish(struct coll *c, const char *block);
/* After the gate, before the other's block is read. */
void swap_take(struct coll *c);
/* When it has been read. */
void swap_learn(struct coll *c);

#endif
