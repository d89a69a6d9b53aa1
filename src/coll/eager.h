/* Job: carry a contribution by eager transport: the rank copies it into its staging slot before it
 *      arrives; peers read it there. They read a caller's buffer in the arena in place.
 * Owns: the slot, one for each parity of the operation's number.
 * Never: carries more than EAGER_TWO_BYTES, or EAGER_EACH_BYTES. */
#ifndef TUTTI_COLL_EAGER_H
#define TUTTI_COLL_EAGER_H

#include "coll/coll.h"

/* This rank's slot of this operation. 0 or -errno. */
int eager_slot(struct coll *c, char **slot);
/* Before the gate: copies into the slot, or lends the buffer (coll.h), and publishes it. 0 or
   -errno. */
int eager_put(struct coll *c);                /* c->bytes of c->send */
int eager_put_parts(struct coll *c);          /* all blocks that this rank gives, as c->even says */
int eager_put_lists(struct coll *c);          /* the same by lists, packed */
int eager_put_nothing(struct coll *c);
int eager_put_to_root(struct coll *c);               /* eager_put; at c->root nothing */
/* After the gate. 0, or -EPROTO: a peer's slot is outside the arena. */
int eager_fold(struct coll *c);                      /* the slots of all into c->recv */
int eager_fold_at_root(struct coll *c);              /* the same at c->root; nothing elsewhere */
int eager_take(struct coll *c);     /* the blocks for this rank, as c->even says */
int eager_take_folded(struct coll *c);               /* the same of a kind that folds, into one */
int eager_take_lists(struct coll *c);       /* the blocks for this rank, by lists */

/* The same for the fast path, without struct coll: `bytes` bytes, for operation seq. */
/* True: there is a slot, so eager_store cannot fail. */
bool eager_ready(const struct tutti_comm *comm, uint64_t seq, size_t bytes);
void eager_store(struct tutti_comm *comm, uint64_t seq, const void *send, size_t bytes);
/* False: -EPROTO. */
bool eager_sources(const struct tutti_comm *comm, uint64_t seq, const void *send, size_t bytes,
                   const void **from);

#endif
