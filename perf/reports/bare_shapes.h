/* Job: collectives of more ranks than CPUs with nothing around them: the copies that must be, and
 *      a yield wherever somebody has to wait. What the scheduler and the memory cost.
 * Owns: words and pieces in r->shared, zero at birth; r->nth.
 * Never: notices a death or a mistake, sleeps. */
#ifndef PERF_BARE_SHAPES_H
#define PERF_BARE_SHAPES_H

#include "harness/job.h"

/* Of r->shared. */
size_t bare_shapes_bytes(int ranks);

/* Every collective but the barrier, and sendrecv; r->op says which.
   bare_shapes_all    nobody is through before all have come and all is given: all or none
   bare_shapes_loose  who only gives leaves as soon as it has given, as in MPI
   …_past             the same, where what is given is written past the caches: the faster way
                      between CPUs far apart, and for BARE_PAST_LEAST bytes at least
   bare_shapes_direct all or none, out of the giver's memory by process_vm_readv: nothing folds */
enum { BARE_PAST_LEAST = 8 << 10, BARE_DIRECT_LEAST = 16 << 10 };
bool bare_shapes_have(enum operation_id op, bool direct);
int bare_shapes_all(struct rank *r, uint64_t times);
int bare_shapes_all_past(struct rank *r, uint64_t times);
int bare_shapes_loose(struct rank *r, uint64_t times);
int bare_shapes_loose_past(struct rank *r, uint64_t times);
int bare_shapes_direct(struct rank *r, uint64_t times);

#endif
