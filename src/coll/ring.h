/* Job: what large operations share: a rank's ring of slots, who has filled and emptied what, and buffers that are read where they lie.
 * Owns: this rank's ring and its words produced, folded, consumed.
 * Never: what an operation does with a slot (ring_reduce.c, ring_move.c).
 *
 * "Ring" is the lock-free queue of chunks, not a ring of neighbours. A rank's ring has `depth` slots. Rounds are counted since the
 * comm began; what a rank gives in round r is in slot r % depth of its ring, or, where its buffer lies in the arena, in that buffer:
 * peers read it there, and its owner stays until they have (exit). Which of the two holds for a chunk follows from what the owner has
 * published: a chunk that lies wholly between lo and hi is read in place, any other from the slot.
 *
 * E16 produced: what a rank gives in a round is stored, then produced (release); who takes it loads produced (acquire), then reads.
 * E17 folded: the folded piece is stored, then folded (release); a reader loads folded (acquire), then copies it.
 * E18 consumed: a rank has read all it needs of a round, then stores consumed (release): the licence to overwrite that round's slots, and,
 *    at the operation's total, the owner's leave to return with a buffer that was read in place.
 * E22 given: of an operation of uneven parts or one that pulls: what the rank gives is in the arena, and what it pulls is taken, then given (release);
 *     a reader (acquire) needs it no more. Of a small one what is lent (coll.h) is read, then given. */
#ifndef TUTTI_COLL_RING_H
#define TUTTI_COLL_RING_H

#include "coll/coll.h"

#include "base/tiny.h"
#include "coll/cma.h"
#include "pattern/chunk.h"

enum { RING_DEPTH = TINY(4, 2), RING_DEPTH_MOST = TINY(12, 2), RING_DEPTH_ALL = TINY(24, 2) };
enum { RING_ROUND_BYTES = TINY(262144, 128), RING_PIECE_LEAST = TINY(4096, 64), RING_PIECE_MOST = TINY(65536, 64) };

static inline size_t ring_piece_bytes(uint32_t ranks)        /* of one piece: so that a round of all ranks stays in the cache */
{
    size_t bytes = (size_t)RING_ROUND_BYTES / ranks / 64 * 64;
    return bytes < RING_PIECE_LEAST ? RING_PIECE_LEAST : bytes > RING_PIECE_MOST ? RING_PIECE_MOST : bytes;
}
/* How many slots: so many that a slot's lines have left their readers' second caches when they are written again (base/staged.h); where many
   ranks share the memory, and where a driver has to register it, as many as keep all busy. */
_Static_assert((int)RING_DEPTH_MOST <= (int)RING_SLOTS, "a comm keeps books of each slot");
static inline uint32_t ring_depth(uint32_t ranks)
{
    uint32_t depth = RING_DEPTH_ALL / ranks;
    return depth < RING_DEPTH ? RING_DEPTH : depth > RING_DEPTH_MOST ? RING_DEPTH_MOST : depth;
}
static inline size_t ring_slot_bytes(uint32_t ranks) { return ring_piece_bytes(ranks) * (ranks + 1); }
/* Of a comm with devices: a copy to or from one has to be large to be worth its start; all ranks' slots together are bounded, as that is
   registered with the driver, and each takes an eighth of a span at most. Never less than a host comm's. */
enum { RING_DEVICE_ALL = TINY(64 << 20, 4096), RING_DEVICE_LEAST = TINY(1 << 20, 512), RING_DEVICE_MOST = TINY(16 << 20, 2048) };
static inline size_t ring_device_slot_bytes(uint32_t ranks, uint64_t span_bytes)
{
    size_t all = RING_DEVICE_ALL / ranks, share = span_bytes / 8 < RING_DEVICE_MOST ? (size_t)(span_bytes / 8) : RING_DEVICE_MOST;
    size_t wanted = all < RING_DEVICE_LEAST ? RING_DEVICE_LEAST : all, slot = (wanted < share ? wanted : share) / RING_DEPTH;
    size_t piece = slot / (ranks + 1) / 64 * 64, least = ring_piece_bytes(ranks);
    return (piece > least ? piece : least) * (ranks + 1);
}
/* What holds for the operation that begins now. */
static inline size_t ring_slot_now(const struct coll *c)
{
    uint32_t size = c->comm->watch.size;
    return c->comm->coll.devices ? ring_device_slot_bytes(size, c->comm->world->arena.header->span_bytes) : ring_slot_bytes(size);
}
/* It changes in the life of a comm once, behind an operation that has ended for all before it ended for anybody (E70): slots that lie otherwise
   in the same memory are then nobody's. */
static inline uint32_t ring_depth_now(const struct coll *c) { return c->comm->coll.devices ? RING_DEPTH : ring_depth(c->comm->watch.size); }
static inline size_t ring_all_slots(const struct coll *c) { return c->ring.depth * c->ring.slot; }
/* Where a buffer of this rank can be read by peers: with devices nowhere, since they copy from registered memory only. */
static inline struct place ring_may_lie(const struct coll *c, const void *at, size_t bytes)
{
    struct place place = c->comm->coll.devices || c->gpu.call ? (struct place){ 0, 0, 0 } : comm_place(c->comm, at, bytes);
    struct place far = place.lo == 0 && place.hi == bytes ? (struct place){ 0, 0, 0 } : cma_place(c, at, bytes);
    return far.at ? far : place;
}
/* Of a place as it is published: a far one is none in an operation that pulls nothing. */
static inline struct place ring_known(const struct coll *c, struct place place)
{
    return cma_is(place.at) && c->cma.may != CMA_YES ? (struct place){ 0, 0, 0 } : place;
}
enum { RING_ROWS_LEAST = 128 };
static inline uint32_t ring_rows_count(uint32_t ranks) { return ranks > RING_ROWS_LEAST ? ranks : RING_ROWS_LEAST; }
static inline size_t ring_rows_bytes(uint32_t ranks) { return ring_rows_count(ranks) * sizeof(struct part_row); }

/* Makes sure that this rank has its ring, for so many rounds from here on (RING_ANY: not known yet, or its rows are needed, too), that use so many
   bytes of a slot; publishes it. c->cma.may is set, so places may be looked for after it. 0, -ENOMEM, -ENOSPC. */
#define RING_ANY UINT64_MAX
int ring_stage(struct coll *c, bool needed, uint64_t rounds, size_t used);
/* From now on the operation takes this many rounds. */
void ring_begin(struct coll *c, uint64_t total);
/* The end, also by an error: nothing of this operation concerns this rank any more, so nobody stays for it. */
void ring_close(struct coll *c);

char *ring_slot(char *ring, const struct coll *c, uint64_t round);
struct part_row *ring_rows(const struct coll *c, char *ring);                        /* of this operation, in that rank's staging */
const struct part_row *ring_rows_of(const struct coll *c, uint32_t p);               /* p's, after it has arrived; NULL: they lie nowhere */
/* Publishes where this rank's buffers lie: c->sends, c->recvs. */
void ring_publish_places(struct coll *c);
struct place ring_send_place(const struct coll *c, uint32_t p);                      /* p's, after it has arrived */
struct place ring_recv_place(const struct coll *c, uint32_t p);
static inline bool ring_in_place(const struct place *at, size_t first, size_t bytes) { return bytes && first >= at->lo && first + bytes <= at->hi; }

/* Have these ranks' words passed `rounds` rounds of this operation? WAITING with op->wait set, or DONE. `who` NULL: all but this one. */
typedef bool ring_who_fn(const struct coll *c, uint32_t p);
int ring_await(struct coll *c, size_t word_at, uint64_t rounds, ring_who_fn *who);
/* Has every peer (of this operation's rounds: who takes) consumed what the slot of this round held? A peer that is gone reads no more. */
int ring_licence(struct coll *c, uint64_t round, ring_who_fn *who);
/* Have all who take read this rank's buffers to the end? */
int ring_exit(struct coll *c, ring_who_fn *who);

/* What a stage hands to a mover ends later; the CPU's copies have ended when they are made. Behind each round: DONE or -errno. How many rounds
   of `handed` have ended: DONE if more than before, WAITING, -errno. */
int ring_handed(struct coll *c, int side);
int ring_landed(struct coll *c, int side, uint64_t handed, uint64_t *landed);
/* Nothing moved: WAITING for what op->wait says, or, while a mover has something under way, for that. */
int ring_waits(struct coll *c);

/* What folds, in rank order: every rank copies the result to c->recv; or c->root alone does. */
int ring_all_reduce_advance(struct op *op);
int ring_reduce_advance(struct op *op);
/* Everything of parts.h. */
int ring_move_advance(struct op *op);

#endif
