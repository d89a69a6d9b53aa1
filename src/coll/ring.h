/* Job: large reductions through rings of chunks: each rank folds one piece of every round, everybody who wants the result copies it out.
 * Owns: this rank's ring and its words produced, folded, consumed.
 * Never: who wants the result (the caller says).
 *
 * "Ring" is the lock-free queue of chunks, not a ring of neighbours. A rank's ring has RING_DEPTH slots; a slot holds the pieces that
 * this rank gives to the others in one round, and the piece that it folds. Rounds are counted since the comm began.
 *
 *   in(r)    licence: everybody has consumed round r - RING_DEPTH. Copy the others' pieces of my buffer in; produced = r + 1    E16
 *   fold(r)  all have produced r: fold my piece of everybody's, in rank order, into my slot;      folded = r + 1                E17
 *   out(r)   all have folded r: copy their pieces out, if I want them;                            consumed = r + 1              E18
 *
 * E16 produced: pieces are stored, then produced (release); a folder loads produced (acquire), then reads them.
 * E17 folded: the folded piece is stored, then folded (release); a reader loads folded (acquire), then copies it.
 * E18 consumed: a rank has read all it needs of a round, then stores consumed (release): the licence to overwrite that round's slots.
 *
 * C(k) asks that everybody has folded the last round: then all of the result is in the arena and each living rank can finish alone. */
#ifndef TUTTI_COLL_RING_H
#define TUTTI_COLL_RING_H

#include "coll/coll.h"

enum { RING_DEPTH = 4, RING_ROUND_BYTES = 262144, RING_PIECE_LEAST = 4096, RING_PIECE_MOST = 65536 };

static inline size_t ring_piece_bytes(uint32_t ranks)        /* of one piece: so that a round of all ranks stays in the cache */
{
    size_t bytes = (size_t)RING_ROUND_BYTES / ranks / 64 * 64;
    return bytes < RING_PIECE_LEAST ? RING_PIECE_LEAST : bytes > RING_PIECE_MOST ? RING_PIECE_MOST : bytes;
}

/* Takes this rank's ring, cuts the work into rounds of `parts` pieces, sets the claim and publishes. 0, -ENOMEM, -ENOSPC. */
int ring_open(struct coll *c, size_t parts, size_t commit_at, int committer, bool gives);
/* The end: nothing of this operation concerns this rank any more. */
void ring_close(struct coll *c);
/* Waits for p's word of `kind` (offset in struct member) to pass round r: WAITING with op->wait set, or DONE. */
int ring_await(struct coll *c, size_t word_at, uint64_t rounds, int only);
/* Has every peer consumed round `rounds` - 1? A peer that is gone reads no more. */
int ring_licence(struct coll *c, uint64_t round);

/* Reduce-scatter then hand out; `wants`: this rank copies the result to c->recv. */
int ring_reduce_advance(struct coll *c, bool wants);

#endif
