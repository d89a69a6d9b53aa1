/* Job: check a collective's arguments: all of them before anything is touched; one sentence for
 *      each refusal.
 * Owns: tutti_comm.api.shapes.
 * Never: runs anything. */
#ifndef TUTTI_API_CHECK_H
#define TUTTI_API_CHECK_H

#include "coll/coll.h"

/* Sets the caller's arguments; run and the algorithm fill in the rest of struct coll. */
static inline void check_describe(struct coll *c, const void *send, void *recv, size_t count,
                                  tutti_type type, tutti_op op, int root)
{
    c->send = send;
    c->recv = recv;
    c->count = count;
    c->bytes = 0;
    c->width = 1;
    c->type = type;
    c->oper = op;
    c->root = root;
    c->fold.kernel = NULL;
    c->fold.scaled = NULL;
    c->fold.user = NULL;
    c->fold.word = NULL;
    c->algorithm = NULL;
    c->lists.n = 0;
    c->lists.first = NULL;
    c->list_hash = 0;
    c->kept = c->lends = c->fold.usual = false;
    c->hands = HANDS_NEVER;
    c->expects = false;
    c->early = 0;
    c->stream.on = false;
    c->gpu.call = NULL;
    c->ways = NULL;
    c->gpu.mover = NULL;
    c->cma.may = CMA_NO;
}

/* Sets what an earlier call of this shape has found. */
static inline void check_shaped(struct coll *c, const struct shape *shape)
{
    c->width = shape->width;
    c->bytes = shape->bytes;
    c->algorithm = shape->algorithm;
    c->fold.kernel = shape->fold;
    c->fold.scaled = shape->scaled;
    c->fold.word = shape->word;
    c->fold.floats = shape->floats;
    c->even = shape->even;
}

/* The stamp of a call that can be remembered. 0: its fields do not fit a stamp exactly, so it
 * cannot. */
static inline uint64_t check_stamp(enum kind kind, size_t count, tutti_type type, tutti_op op,
                                   int root)
{
    if ((unsigned)type > TUTTI_F8E5M2 || (unsigned)op >= TUTTI_OP_USER
        || (unsigned)root >= RANKS_MAX || count >= STAMP_HASHED)
        return 0;
    return fingerprint_make(kind, type, op, root, count);
}
/* Where a call is remembered: it is if that shape has this stamp, and the stamp is not 0. */
static inline struct shape *check_remembered(struct tutti_comm *comm, uint64_t stamp)
{
    return &comm->api.shapes[(stamp ^ stamp >> 32 ^ stamp >> 58) % SHAPES];
}

/* Checks type, count, root, operation, and call. For even parts: chooses the algorithm. It looks up
   the shape of an equal earlier call: programs repeat calls, and to check anew is a fifth of a
   small all_reduce. */
int check_data(struct tutti_comm *comm, struct coll *c, enum kind kind, uint32_t site,
               const tutti_call *call);
/* Checks the buffers of even parts. */
int check_buffers(struct tutti_comm *comm, const struct coll *c, enum kind kind, uint32_t site);
/* Checks the lists: pointers, sums, overlaps, what this rank gives itself. Sets c->count, bytes,
 * lists.most, list_hash. */
int check_lists(struct tutti_comm *comm, struct coll *c, enum kind kind, uint32_t site);

#endif
