/* Job: keep what large operations share: a rank's pipeline of slots, the words that say who has
 *      filled and emptied which slot, and buffers that are read in place.
 * Owns: this rank's pipeline and its words produced, folded, consumed.
 * Never: says what an operation does with a slot (pipeline_reduce.c, pipeline_move.c).
 *
 * A pipeline is a lock-free queue of chunks, not a chain of neighbours. A rank's pipeline has
 * `depth` slots. Rounds are counted since the comm began. What a rank gives in round r is in slot r
 * % depth of its pipeline. If its buffer lies in the arena, it is in that buffer: peers read it
 * there, and its owner stays until they have (exit). The owner's published place decides for each
 * chunk: a chunk that lies wholly between lo and hi is read in place, any other from the slot.
 *
 * E16 produced: what a rank gives in a round is stored, then produced (release); a rank that takes
 *     it loads produced (acquire), then reads.
 * E17 folded: the folded piece is stored, then folded (release); a reader loads folded (acquire),
 *     then copies it.
 * E18 consumed: a rank has read all it needs of a round, then stores consumed (release). Its value
 *     permits the owner to overwrite that round's slots, and, at the operation's total, to return
 *     with a buffer that was read in place.
 * E22 given: in an operation of uneven parts or a direct one: what the rank gives is in the arena,
 *     and what it takes is taken, then given (release); a reader (acquire) needs it no more. In a
 *     small one: a lent buffer (coll.h) is read, then given. */
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

/* Bytes of one piece: a round of all ranks stays in the cache. */
static inline size_t pipeline_piece_bytes(uint32_t ranks)
{
    size_t bytes = (size_t)PIPELINE_ROUND_BYTES / ranks / 64 * 64;
    return bytes < PIPELINE_PIECE_LEAST ? PIPELINE_PIECE_LEAST
        : bytes > PIPELINE_PIECE_MOST ? PIPELINE_PIECE_MOST
        : bytes;
}
/* Number of slots: so many that a slot's lines have left their readers' second-level caches when
   they are written again (base/staged.h). If many ranks share the memory, or a driver has to
   register it: as many as keep all busy. */
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

/* For a comm with devices. A copy to or from a device has to be large to be worth its start. All
   ranks' slots together are bounded, because the driver registers them, and each pipeline takes at
   most an eighth of a span. Never less than a host comm's. */
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
/* The slot size of the operation that begins now. */
static inline size_t pipeline_slot_now(const struct coll *c)
{
    uint32_t size = c->comm->watch.size;
    return c->comm->coll.devices
        ? pipeline_device_slot_bytes(size, c->comm->world->arena.header->span_bytes)
        : pipeline_slot_bytes(size);
}
/* The depth changes once in the life of a comm, after an operation that ended for all before it
   ended for any rank (E70): no rank then uses slots of the old layout in that memory. */
static inline uint32_t pipeline_depth_now(const struct coll *c)
{
    return c->comm->coll.devices ? PIPELINE_DEPTH : pipeline_depth(c->comm->watch.size);
}

static inline size_t pipeline_all_slots(const struct coll *c)
{
    return c->pipeline.depth * c->pipeline.slot;
}

/* Where peers can read a buffer of this rank. With devices nowhere, because they copy from
 * registered memory only. */
static inline struct place pipeline_may_lie(const struct coll *c, const void *at, size_t bytes)
{
    struct place place = c->comm->coll.devices || c->gpu.call ? (struct place){ 0, 0, 0 }
                                                              : comm_place(c->comm, at, bytes);
    struct place far = place.lo == 0 && place.hi == bytes ? (struct place){ 0, 0, 0 }
                                                          : cma_place(c, at, bytes);
    return far.at ? far : place;
}
/* The place as published, or an empty one: private memory does not count in an operation that does
   not read it directly. */
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

/* Makes sure that this rank has its pipeline, for `rounds` rounds from here on that use `used`
   bytes of a slot; publishes it. PIPELINE_ANY: the number is not known yet, or the rows are needed,
   too. c->cma.may must be set; places may be looked up after it. 0, -ENOMEM, -ENOSPC. */
#define PIPELINE_ANY UINT64_MAX
int pipeline_stage(struct coll *c, bool needed, uint64_t rounds, size_t used);
/* Sets the number of rounds of the operation. */
void pipeline_begin(struct coll *c, uint64_t total);
/* The end, also by an error: this rank needs nothing of this operation any more, so no rank waits
 * for it. */
void pipeline_close(struct coll *c);

char *pipeline_slot(char *pipeline, const struct coll *c, uint64_t round);
/* of this operation, in the staging of that pipeline's rank */
struct part_row *pipeline_rows(const struct coll *c, char *pipeline);
/* p's, after it has arrived; NULL: they are outside the arena */
const struct part_row *pipeline_rows_of(const struct coll *c, uint32_t p);
/* Publishes where this rank's buffers are: c->sends, c->recvs. */
void pipeline_publish_places(struct coll *c);
struct place pipeline_send_place(const struct coll *c, uint32_t p);  /* p's, after it has arrived */
struct place pipeline_recv_place(const struct coll *c, uint32_t p);

static inline bool pipeline_in_place(const struct place *at, size_t first, size_t bytes)
{
    return bytes && first >= at->lo && first + bytes <= at->hi;
}

/* DONE: the words of these ranks have passed `rounds` rounds of this operation. WAITING: op->wait
 * is set. who NULL: all but this rank. */
typedef bool pipeline_who_fn(const struct coll *c, uint32_t p);
int pipeline_await(struct coll *c, size_t word_at, uint64_t rounds, pipeline_who_fn *who);
/* DONE: every peer (of this operation's rounds: every rank that takes) has consumed the slot of
 * this round. A peer that is gone reads no more. */
int pipeline_licence(struct coll *c, uint64_t round, pipeline_who_fn *who);
/* DONE: all ranks that take have read the first `rounds` rounds of this operation. */
int pipeline_read(struct coll *c, uint64_t rounds, pipeline_who_fn *who);
/* DONE: all ranks that take have read this rank's buffers to the end. */
int pipeline_exit(struct coll *c, pipeline_who_fn *who);

/* A copy that is handed to a mover ends later; the CPU's copy ends at once. pipeline_handed is
   called after each round: DONE or -errno. pipeline_landed sets how many of the `handed` rounds
   have ended. DONE: more than before. WAITING, -errno. */
int pipeline_handed(struct coll *c, int side);
int pipeline_landed(struct coll *c, int side, uint64_t handed, uint64_t *landed);
/* Nothing moved: WAITING for op->wait, or, while a mover has copies under way, for those. */
int pipeline_waits(struct coll *c);

/* Of uneven parts, before the arrival: what this rank gives, and where it lies. */
void pipeline_pairs_fill(struct coll *c);
/* With PARTS_PAIRS, after the gate: begins, with the rounds of all. False: a peer does not give
   what this rank takes; the wait is for the verdict. */
bool pipeline_pairs_agree(struct coll *c);

/* The kinds that fold, in rank order: every rank copies the result to c->recv, or only c->root
   does. */
int pipeline_all_reduce_advance(struct op *op);
int pipeline_reduce_advance(struct op *op);
/* All kinds of parts.h. */
int pipeline_move_advance(struct op *op);

#endif
