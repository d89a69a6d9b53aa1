/* Job: begin and end an operation: its number, its record in the journal, and, if it failed, its
 *      report.
 * Owns: tutti_comm.seq.
 * Never: runs what is between (run.h, fastpath.h, queue.h). */
#ifndef TUTTI_ENGINE_OPERATION_H
#define TUTTI_ENGINE_OPERATION_H

#include "coll/coll.h"
#include "coll/select.h"

static inline uint64_t operation_fingerprint(const struct coll *c, enum kind kind)
{
    return c->list_hash ? fingerprint_make_list(kind, c->type, c->oper, c->list_hash)
                        : fingerprint_make(kind, c->type, c->oper, c->root, c->count);
}

static inline void operation_gate(struct tutti_comm *comm)
{
    if (!comm->coll.gate)
        comm->coll.gate = select_algorithm(comm->world->rules, KIND_BARRIER, select_comms(comm), 0);
}

/* Fills in number, descriptor, algorithm and gate, in call order. */
void operation_number(struct tutti_comm *comm, struct coll *c, enum kind kind, uint32_t site,
                      int64_t timeout_ns);
/* The same for an operation that has its number already. */
void operation_describe(struct tutti_comm *comm, struct coll *c, uint64_t seq, enum kind kind,
                        uint32_t site, int64_t timeout_ns);
/* Begins the journal's record, when the operation becomes the current one. */
void operation_begin(struct coll *c, uint64_t tick);
/* After the last operation of a block of its kind, which began at `tick`: adapts the backoff. */
void operation_tune(struct tutti_comm *comm, enum kind kind, uint64_t tick);
/* After the end: report, journal, figures. Returns result. */
int  operation_end(struct coll *c, int result);

#endif
