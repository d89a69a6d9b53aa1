/* Job: choose plain or non-temporal stores for the results of a large operation, by cost
 *      (base/tuner).
 * Owns: tutti_comm.coll.streams.
 * Never: changes anything that a peer could notice. */
#ifndef TUTTI_COLL_NONTEMPORAL_H
#define TUTTI_COLL_NONTEMPORAL_H

#include "coll/coll.h"

/* The results that this rank writes, of a kind of parts.h, as far as the choice counts them: of a
 * gather or all_gather one block. In a reduce_scatter or scan each folds its own: no choice. */
size_t stream_bytes(const struct coll *c);
/* Called before an operation that writes `bytes` of results here; sets c->stream.on. Never on if in
 * place: the lines are then in the caches. */
void stream_choose(struct coll *c, size_t bytes, bool in_place);
void stream_learn(struct coll *c);                   /* called after it */

#endif
