/* Job: check that all ranks get the same results (TUTTI_VERIFY).
 * Owns: watch.outcome.
 * Never: checks results that differ by rank (reduce, gather, scan …). */
#ifndef TUTTI_ENGINE_VERIFY_H
#define TUTTI_ENGINE_VERIFY_H

#include "coll/coll.h"

/* After an operation that succeeded: compares the digests that the ranks brought with their
   arrivals, then adds this result to its own. 0, or -EPROTO, the same on all ranks: the comm is
   broken, with the report. */
int verify_end(struct coll *c);

#endif
