/* Job: say which rank gives which block of elements to which rank, for every collective that moves
 *      blocks.
 * Owns: nothing.
 * Never: moves a block (inline, eager, pipelined).
 *
 * Block (from -> to). With PARTS_EACH a rank gives each rank a block of its own; without, it gives
 * one block to all ranks that take. A rank that folds takes all its blocks into one. Other ranks
 * take each block into a place of its own. */
#ifndef TUTTI_COLL_PARTS_H
#define TUTTI_COLL_PARTS_H

#include "coll/coll.h"

enum parts {
    PARTS_EACH = 1,
    PARTS_ROOT_GIVES = 2,
    PARTS_ROOT_TAKES = 4,
    PARTS_FOLD = 8,
    PARTS_LOWER = 16,                  /* taken from the lower ranks and from itself … */
    PARTS_STRICT = 32,                 /* … but not from itself */
    PARTS_UNEVEN = 64,                 /* counts by lists */
    PARTS_PAIRS = 128                  /* … and only the two ranks of a block have its count */
};

unsigned parts_of(enum kind kind);
/* An all_reduce moves blocks only where all fold all of it (pipeline_swap.h). */
static inline unsigned parts_how(const struct coll *c)
{
    return c->algorithm->kind == KIND_ALL_REDUCE ? PARTS_FOLD : parts_of(c->algorithm->kind);
}

bool parts_gives(const struct coll *c, uint32_t p);          /* true: p gives something to others */
bool parts_takes(const struct coll *c);           /* true: this rank takes something (or its own) */
bool parts_keeps(const struct coll *c);           /* true: this rank has a block for itself */
static inline uint32_t parts_next(const struct coll *c)                  /* the neighbour's rank */
{
    const struct watch *w = &c->comm->watch;
    return w->me + 1 < w->size ? w->me + 1 : 0;
}
/* True: there is a block from -> to; from != to. */
bool parts_moves(const struct coll *c, uint32_t from, uint32_t to);
/* Elements of a block. With PARTS_PAIRS: only for blocks of this rank. */
size_t parts_count(const struct coll *c, uint32_t from, uint32_t to);
const char *parts_send(const struct coll *c, uint32_t to);
char *parts_recv(const struct coll *c, uint32_t from);
/* Bytes before block (from -> to), if all that `from` gives is packed. Not for PARTS_PAIRS. */
size_t parts_offset(const struct coll *c, uint32_t from, uint32_t to);

/* For even blocks of `block` bytes; zeros if they are more than EAGER_TWO_BYTES together,
   or EAGER_EACH_BYTES. */
struct even parts_even(enum kind kind, const struct watch *w, uint32_t root, size_t block);

/* How many of the elements [first, first + n) are in a block of `count`. */
static inline size_t parts_cut(size_t count, size_t first, size_t n)
{
    return first >= count ? 0 : count - first < n ? count - first : n;
}

/* How many blocks this rank gives and takes, as counted by the lists of a call. */
struct sides { uint32_t gives, takes; };
struct sides parts_sides(const struct tutti_comm *comm, const struct coll *c, enum kind kind);

/* Bytes that this rank gives out of c->send and takes into c->recv, for even parts. */
struct extent { size_t sent, taken; };
struct extent parts_extent(const struct tutti_comm *comm, const struct coll *c, enum kind kind);

#endif
