/* Job: what large operations share: a rank's pipeline of slots, who has filled and emptied what,
 *      and buffers that are read where they lie.
 * Owns: this rank's pipeline and its words produced, folded, consumed.
 * Never: what an operation does with a slot (pipeline_reduce.c, pipeline_move.c).
 *
 * "Ring" is the lock-free queue of chunks, not a pipeline of neighbours. A rank's pipeline has
 * `depth` slots. Rounds are counted since the comm began; what a rank gives in round r is in slot r
 * % depth of its pipeline, or, where its buffer lies in the arena, in that buffer: peers read it
 * there, and its owner stays until they have (exit). Which of the two holds for a chunk follows
 * from what the owner has published: a chunk that lies wholly between lo and hi is read in place,
 * any other from the slot.
 *
 * E16 produced: what a rank gives in a round is stored, then produced (release); who takes it loads
 *     produced (acquire), then reads.
 * E17 folded: the folded piece is stored, then folded (release); a reader loads folded (acquire),
 *     then copies it.
 * E18 consumed: a rank has read all it needs of a round, then stores consumed (release): the
 *    licence to overwrite that round's slots, and, at the operation's total, the owner's leave to
 *    return with a buffer that was read in place.
 * E22 given: of an operation of uneven parts or a direct one: what the rank gives is in the
 *     arena, and what it takes is taken, then given (release); a reader (acquire) needs it no
 *     more. Of a small one what is lent (coll.h) is read, then given. */
#ifndef TUTTI_COLL_PIPELINE_H
#define TUTTI_COLL_PIPELINE_H

#include "coll/coll.h"

#include "base/tiny.h"
#include "coll/cma.h"
#include "pattern/chunk.h"

enum {
    PIPELINE_DEPTH = TINY(4, 2),
    PIPELINE_DEPTH_MOST = TINY(12, 2),
    PIPELINE_DEPTH_ALL = TINY(24, 2)
};
enum {
    PIPELINE_ROUND_BYTES = TINY(262144, 128),
    PIPELINE_PIECE_LEAST = TINY(4096, 64),
    PIPELINE_PIECE_MOST = TINY(65536, 64)
};

/* of one piece: so that a round of all ranks stays in the cache */
static inline size_t pipeline_piece_bytes(uint32_t ranks)
{
    size_t bytes = (size_t)PIPELINE_ROUND_BYTES / ranks / 64 * 64;
    return bytes < PIPELINE_PIECE_LEAST ? PIPELINE_PIECE_LEAST
        : bytes > PIPELINE_PIECE_MOST ? PIPELINE_PIECE_MOST
        : bytes;
}
/* How many slots: so many that a slot's lines have left their readers' second caches when they are
   written again (base/staged.h); where many ranks share the memory, and where a driver has to
   register it, as many as keep all busy. */
_Static_assert((int)PIPELINE_DEPTH_MOST <= (int)PIPELINE_SLOTS, "a comm keeps books of each slot");
static inline uint32_t pipeline_depth(uint32_t ranks)
{
    uint32_t depth = PIPELINE_DEPTH_ALL / ranks;
    return depth < PIPELINE_DEPTH ? PIPELINE_DEPTH
        : depth > PIPELINE_DEPTH_MOST ? PIPELINE_DEPTH_MOST
        : depth;
}

static inline size_t pipeline_slot_bytes(uint32_t ranks)
{
    return pipeline_piece_bytes(ranks) * (ranks + 1);
}

/* Of a comm with devices: a copy to or from one has to be large to be worth its start; all ranks'
   slots together are bounded, as that is registered with the driver, and each takes an eighth of a
   span at most. Never less than a host comm's. */
enum {
    PIPELINE_DEVICE_ALL = TINY(64 << 20, 4096),
    PIPELINE_DEVICE_LEAST = TINY(1 << 20, 512),
    PIPELINE_DEVICE_MOST = TINY(16 << 20, 2048)
};
static inline size_t pipeline_device_slot_bytes(uint32_t ranks, uint64_t span_bytes)
{
    size_t all = PIPELINE_DEVICE_ALL / ranks,
           share = span_bytes / 8 < PIPELINE_DEVICE_MOST ? (size_t)(span_bytes / 8)
                                                         : PIPELINE_DEVICE_MOST;
    size_t wanted = all < PIPELINE_DEVICE_LEAST ? PIPELINE_DEVICE_LEAST : all,
           slot = (wanted < share ? wanted : share) / PIPELINE_DEPTH;
    size_t piece = slot / (ranks + 1) / 64 * 64, least = pipeline_piece_bytes(ranks);
    return (piece > least ? piece : least) * (ranks + 1);
}
/* What holds for the operation that begins now. */
static inline size_t pipeline_slot_now(const struct coll *c)
{
    uint32_t size = c->comm->watch.size;
    return c->comm->coll.devices
        ? pipeline_device_slot_bytes(size, c->comm->world->arena.header->span_bytes)
        : pipeline_slot_bytes(size);
}
/* It changes in the life of a comm once, behind an operation that has ended for all before it ended
   for anybody (E70): slots that lie otherwise in the same memory are then nobody's. */
static inline uint32_t pipeline_depth_now(const struct coll *c)
{
    return c->comm->coll.devices ? PIPELINE_DEPTH : pipeline_depth(c->comm->watch.size);
}

static inline size_t pipeline_all_slots(const struct coll *c)
{
    return c->pipeline.depth * c->pipeline.slot;
}

/* Where a buffer of this rank can be read by peers: with devices nowhere, since they copy from
 * registered memory only. */
static inline struct place pipeline_may_lie(const struct coll *c, const void *at, size_t bytes)
{
    struct place place = c->comm->coll.devices || c->gpu.call ? (struct place){ 0, 0, 0 }
                                                              : comm_place(c->comm, at, bytes);
    struct place far = place.lo == 0 && place.hi == bytes ? (struct place){ 0, 0, 0 }
                                                          : cma_place(c, at, bytes);
    return far.at ? far : place;
}
/* Of a place as it is published: a far one is none in an operation that reads nothing directly. */
static inline struct place pipeline_known(const struct coll *c, struct place place)
{
    return cma_is(place.at) && c->cma.may != CMA_YES ? (struct place){ 0, 0, 0 } : place;
}
enum { PIPELINE_ROWS_LEAST = 128 };

static inline uint32_t pipeline_rows_count(uint32_t ranks)
{
    return ranks > PIPELINE_ROWS_LEAST ? ranks : PIPELINE_ROWS_LEAST;
}

static inline size_t pipeline_rows_bytes(uint32_t ranks)
{
    return pipeline_rows_count(ranks) * sizeof(struct part_row);
}

/* Makes sure that this rank has its pipeline, for so many rounds from here on (PIPELINE_ANY: not
   known yet, or its rows are needed, too), that use so many bytes of a slot; publishes it.
   c->cma.may is set, so places may be looked for after it. 0, -ENOMEM, -ENOSPC. */
#define PIPELINE_ANY UINT64_MAX
int pipeline_stage(struct coll *c, bool needed, uint64_t rounds, size_t used);
/* From now on the operation takes this many rounds. */
void pipeline_begin(struct coll *c, uint64_t total);
/* The end, also by an error: nothing of this operation concerns this rank any more, so nobody
 * stays for it. */
void pipeline_close(struct coll *c);

char *pipeline_slot(char *pipeline, const struct coll *c, uint64_t round);
/* of this operation, in that rank's staging */
struct part_row *pipeline_rows(const struct coll *c, char *pipeline);
/* p's, after it has arrived; NULL: they lie nowhere */
const struct part_row *pipeline_rows_of(const struct coll *c, uint32_t p);
/* Publishes where this rank's buffers lie: c->sends, c->recvs. */
void pipeline_publish_places(struct coll *c);
struct place pipeline_send_place(const struct coll *c, uint32_t p);  /* p's, after it has arrived */
struct place pipeline_recv_place(const struct coll *c, uint32_t p);

static inline bool pipeline_in_place(const struct place *at, size_t first, size_t bytes)
{
    return bytes && first >= at->lo && first + bytes <= at->hi;
}

/* Have these ranks' words passed `rounds` rounds of this operation? WAITING with op->wait set, or
 * DONE. `who` NULL: all but this one. */
typedef bool pipeline_who_fn(const struct coll *c, uint32_t p);
int pipeline_await(struct coll *c, size_t word_at, uint64_t rounds, pipeline_who_fn *who);
/* Has every peer (of this operation's rounds: who takes) consumed what the slot of this round held?
 * A peer that is gone reads no more. */
int pipeline_licence(struct coll *c, uint64_t round, pipeline_who_fn *who);
/* Have all who take read this rank's buffers to the end? */
int pipeline_exit(struct coll *c, pipeline_who_fn *who);

/* What a stage hands to a mover ends later; the CPU's copies have ended when they are made. Behind
   each round: DONE or -errno. How many rounds of `handed` have ended: DONE if more than before,
   WAITING, -errno. */
int pipeline_handed(struct coll *c, int side);
int pipeline_landed(struct coll *c, int side, uint64_t handed, uint64_t *landed);
/* Nothing moved: WAITING for what op->wait says, or, while a mover has something under way,
 * for that. */
int pipeline_waits(struct coll *c);

/* What folds, in rank order: every rank copies the result to c->recv; or c->root alone does. */
int pipeline_all_reduce_advance(struct op *op);
int pipeline_reduce_advance(struct op *op);
/* Everything of parts.h. */
int pipeline_move_advance(struct op *op);

#endif
