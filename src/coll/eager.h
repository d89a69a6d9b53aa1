/* Job: eager transport: a contribution is copied into this rank's staging slot before it arrives;
 *      peers read it there. A caller's buffer in the arena is read in place.
 * Owns: the slot, one for each parity of the operation's number.
 * Never: more than EAGER_BYTES. */
#ifndef TUTTI_COLL_EAGER_H
#define TUTTI_COLL_EAGER_H

#include "coll/coll.h"

/* This rank's slot of this operation. 0 or -errno. */
int eager_slot(struct coll *c, char **slot);
/* Before the gate: into the slot, or lent (coll.h), and published. 0 or -errno. */
int eager_put(struct coll *c);                /* c->bytes of c->send */
int eager_put_parts(struct coll *c);          /* all blocks that this rank gives, as c->even says */
int eager_put_lists(struct coll *c);          /* the same by lists, packed */
int eager_put_nothing(struct coll *c);
int eager_put_to_root(struct coll *c);               /* eager_put; at c->root nothing */
/* After the gate. 0, or -EPROTO where a peer's slot lies nowhere. */
int eager_fold(struct coll *c);                      /* everybody's slots into c->recv */
int eager_fold_at_root(struct coll *c);              /* the same at c->root; nothing elsewhere */
int eager_take(struct coll *c);     /* the blocks that are meant for this rank, as c->even says */
int eager_take_folded(struct coll *c);               /* those of a kind that folds, into one */
int eager_take_lists(struct coll *c);       /* the blocks that are meant for this rank, by lists */

/* The same for who has no description of the operation: so many bytes, for operation seq. */
/* there is a slot, so that eager_store cannot fail */
bool eager_ready(const struct tutti_comm *comm, uint64_t seq, size_t bytes);
void eager_store(struct tutti_comm *comm, uint64_t seq, const void *send, size_t bytes);
/* false: -EPROTO */
bool eager_sources(const struct tutti_comm *comm, uint64_t seq, const void *send, size_t bytes,
                   const void **from);

#endif
