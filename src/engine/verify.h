/* Job: TUTTI_VERIFY: do all ranks get the same results?
 * Owns: watch.outcome.
 * Never: results that differ by rank (reduce, gather, scan …). */
#ifndef TUTTI_ENGINE_VERIFY_H
#define TUTTI_ENGINE_VERIFY_H

#include "coll/coll.h"

/* After an operation that succeeded: compares what the ranks said when they arrived at it about the
   results before; then adds its own. 0, or -EPROTO, the same on all ranks: the comm is broken, with
   the report. */
int verify_end(struct coll *c);

#endif
