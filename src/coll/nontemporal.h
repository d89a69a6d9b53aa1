/* Job: choose plain or non-temporal stores for the results of a large operation, by cost
 *      (base/tuner).
 * Owns: tutti_comm.coll.streams.
 * Never: changes anything that a peer could notice. */
#ifndef TUTTI_COLL_NONTEMPORAL_H
#define TUTTI_COLL_NONTEMPORAL_H

#include "coll/coll.h"

/* Called before an operation that writes `bytes` of results here; sets c->stream.on. Never on if in
 * place: the lines are then in the caches. */
void stream_choose(struct coll *c, size_t bytes, bool in_place);
void stream_learn(struct coll *c);                   /* called after it */

#endif
