/* Job: who gives which block of elements to whom, for every collective that moves blocks.
 * Owns: nothing.
 * Never: how a block travels (inline, eager, pipelined).
 *
 * Block (from -> to). SAME: a rank gives one block to all who take; EACH: one of its own to
 * each rank. A rank that folds takes all its blocks into one; the others take each into a place
 * of its own. */
#ifndef TUTTI_COLL_PARTS_H
#define TUTTI_COLL_PARTS_H

#include "coll/coll.h"

enum parts {
    PARTS_EACH = 1,
    PARTS_ROOT_GIVES = 2,
    PARTS_ROOT_TAKES = 4,
    PARTS_FOLD = 8,
    PARTS_LOWER = 16,                  /* taken from the lower ranks and oneself … */
    PARTS_STRICT = 32,                 /* … but not oneself */
    PARTS_UNEVEN = 64,                 /* counts by lists */
    PARTS_PAIRS = 128                  /* … which only the two ranks of a block know */
};

unsigned parts_of(enum kind kind);
static inline unsigned parts_how(const struct coll *c) { return parts_of(c->algorithm->kind); }

bool parts_gives(const struct coll *c, uint32_t p);                 /* has p anything for others? */
bool parts_takes(const struct coll *c);           /* does this rank take anything, be it its own? */
bool parts_keeps(const struct coll *c);           /* has this rank a block for itself? */
/* is there a block from -> to? from != to */
bool parts_moves(const struct coll *c, uint32_t from, uint32_t to);
/* Elements of a block. PARTS_PAIRS: of this rank's own alone. */
size_t parts_count(const struct coll *c, uint32_t from, uint32_t to);
const char *parts_send(const struct coll *c, uint32_t to);
char *parts_recv(const struct coll *c, uint32_t from);
/* Bytes before block (from -> to) where all that `from` gives lies packed. Not for PARTS_PAIRS. */
size_t parts_offset(const struct coll *c, uint32_t from, uint32_t to);

/* Of even blocks of so many bytes; zeros where they are more than EAGER_BYTES together. */
struct even parts_even(enum kind kind, const struct watch *w, uint32_t root, size_t block);

/* How many of the elements [first, first + n) a block of `count` has. */
static inline size_t parts_cut(size_t count, size_t first, size_t n)
{
    return first >= count ? 0 : count - first < n ? count - first : n;
}

/* How many blocks this rank gives, and takes, as the lists of a call count them. */
struct sides { uint32_t gives, takes; };
struct sides parts_sides(const struct tutti_comm *comm, const struct coll *c, enum kind kind);

/* Bytes that this rank gives out of c->send and takes into c->recv, in even parts. */
struct extent { size_t sent, taken; };
struct extent parts_extent(const struct tutti_comm *comm, const struct coll *c, enum kind kind);

#endif
