/* Job: run an operation: by the fast path, by the state machine, or, if others are under way, in
 *      the queue.
 * Owns: nothing.
 * Never: checks arguments. */
#ifndef TUTTI_ENGINE_RUN_H
#define TUTTI_ENGINE_RUN_H

#include "coll/coll.h"

/* Runs an operation to its end, or, with call->work or work under way, through the queue. c->send,
 * recv, count, type, oper, root, fold are set. */
int run_collective(struct tutti_comm *comm, struct coll *c, enum kind kind, uint32_t site,
                   const tutti_call *call);

#endif
