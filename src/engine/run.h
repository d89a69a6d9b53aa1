/* Job: number an operation, run it or queue it, and turn a failure into its report.
 * Owns: tutti_comm.seq.
 * Never: checks arguments. */
#ifndef TUTTI_ENGINE_RUN_H
#define TUTTI_ENGINE_RUN_H

#include "coll/coll.h"

/* How long the fast path waits for each peer before the state machine does. And from its arrival to its first look, in cycles, as long as
   base/backoff.h has not found out better; what takes longer than a line's way is looked for at once. */
enum { FAST_SPINS = 256, BACKOFF = 32, BACKOFF_MOST = 1024 };

/* c->send, recv, count, type, oper, root, fold are set. Runs it to its end, or, with call->work or work under way, through the queue. */
int run_collective(struct tutti_comm *comm, struct coll *c, enum kind kind, uint32_t site, const tutti_call *call);

/* Fills in number, descriptor, algorithm and gate, in call order; begins the journal's record when it becomes the operation in hand. */
void run_number(struct tutti_comm *comm, struct coll *c, enum kind kind, uint32_t site, int64_t timeout_ns);
void run_begin(struct coll *c, uint64_t tick);
/* After the last operation of a block of its kind, which began at `tick`: its pause is looked at. 0. */
int  run_tune(struct tutti_comm *comm, enum kind kind, uint64_t tick);
/* After the end: report, journal, figures. Returns result. */
int  run_end(struct coll *c, int result);

#endif
