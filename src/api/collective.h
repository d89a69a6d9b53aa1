/* Job: run a collective of even parts from its description to its end: check the arguments, hand it
 *      to run. All checks are done before anything is touched.
 * Owns: nothing.
 * Never: takes lists of counts (vector_forms.c). */
#ifndef TUTTI_API_COLLECTIVE_H
#define TUTTI_API_COLLECTIVE_H

#include "api/check.h"
#include "api/device.h"
#include "engine/guard.h"
#include "engine/run.h"

/* For a process with CUDA. Not inline: the description of device buffers is large. */
int collective_device(struct tutti_comm *comm, struct coll *c, enum kind kind, uint32_t number,
                      const tutti_call *call);

/* True: the same call as the last one, with no tutti_call. Its memory may have become device
 * memory. */
static inline bool collective_again(const struct tutti_comm *comm, struct coll *c, enum kind kind)
{
    const struct again *a = &comm->api.again_parts;
    uint64_t differs = ((uintptr_t)a->send ^ (uintptr_t)c->send)
        | ((uintptr_t)a->recv ^ (uintptr_t)c->recv) | (a->count ^ c->count)
        | (uint64_t)(unsigned)(a->type ^ c->type) | (uint64_t)(unsigned)(a->op ^ c->oper)
        | (uint64_t)(unsigned)(a->root ^ c->root) | (a->kind ^ kind);
    if (differs || a->how == AGAIN_NEVER
        || (a->how == AGAIN_ASK && device_suspected(comm, c, NULL)))
        return false;
    check_shaped(c, a->shape);
    return true;
}

static inline void collective_remember(struct tutti_comm *comm, const struct coll *c,
                                       enum kind kind)
{
    uint64_t stamp = check_stamp(kind, c->count, c->type, c->oper, c->root);
    const struct shape *shape = check_remembered(comm, stamp);
    bool fixed = device_host_fixed(comm->world, c->send) && device_host_fixed(comm->world, c->recv);
    if (stamp && shape->stamp == stamp)
        comm->api.again_parts = (struct again){
            c->send, c->recv, c->count, c->type, c->oper, c->root, kind,
            fixed ? AGAIN_FIXED : AGAIN_ASK, shape
        };
}

/* Called inside the comm (guard_enter); leaves it. */
static inline int collective_entered(struct tutti_comm *comm, struct coll *c, enum kind kind,
                                     uint32_t number, const tutti_call *call)
{
    int r = check_data(comm, c, kind, number, call);
    if (r == 0)
        r = check_buffers(comm, c, kind, number);
    if (r == 0 && device_suspected(comm, c, call))
        r = collective_device(comm, c, kind, number, call);
    else if (r == 0) {
        if (!call && kind != KIND_ALL_REDUCE)
            collective_remember(comm, c, kind);
        r = run_collective(comm, c, kind, number, call);
    }
    return guard_leave(comm, r);
}

/* Inline, so that each caller's kind is a constant. */
static inline __attribute__((always_inline)) int collective(const char *site, tutti_comm *comm,
                                                            struct coll *c, enum kind kind,
                                                            const tutti_call *call)
{
    guard_clear(call);
    int r = guard_enter(comm);
    if (r < 0)
        return r;
    uint32_t number = guard_site(comm, site);
    if (!call && collective_again(comm, c, kind))
        return guard_leave(comm, run_collective(comm, c, kind, number, NULL));
    return collective_entered(comm, c, kind, number, call);
}

#endif
