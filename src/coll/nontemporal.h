/* Job: choose plain or non-temporal stores for the results of a large operation, by
 *      cost (base/tuner).
 * Owns: tutti_comm.coll.streams.
 * Never: anything that a peer could notice. */
#ifndef TUTTI_COLL_NONTEMPORAL_H
#define TUTTI_COLL_NONTEMPORAL_H

#include "coll/coll.h"

/* Before an operation that writes `bytes` of results here; sets c->stream.on. In place the lines
 * are in the caches: never. */
void stream_choose(struct coll *c, size_t bytes, bool in_place);
void stream_learn(struct coll *c);                   /* after it */

#endif
