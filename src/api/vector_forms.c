/* The general forms, with one pointer and one count per rank, and all_reduce_many, with one per
 * buffer. A call that returns at its end uses the caller's lists in place; work has a copy
 * (engine/queue). */
#define TUTTI_NO_SITES
#include "api/check.h"
#include "api/device.h"
#include "engine/guard.h"
#include "engine/run.h"
#include "os/caller.h"

#include <stdlib.h>

static int uneven(const char *site, tutti_comm *comm, struct coll *c, enum kind kind,
                  const tutti_call *call)
{
    CALLER_KEPT;
    guard_clear(call);
    int r = guard_enter(comm);
    if (r < 0)
        return r;
    uint32_t number = guard_site(comm, site);
    if (kind != KIND_ALL_REDUCE_MANY)
        c->lists.n = (int)comm->watch.size;
    r = check_data(comm, c, kind, number, call);
    if (r == 0)
        r = check_lists(comm, c, kind, number);
    struct device_call d;
    if (r == 0 && device_suspected(comm, c, call))
        r = device_check(comm, c, kind, number, call, &d);
    if (r == 0)
        r = run_collective(comm, c, kind, number, call);
    if (c->ways)                                     /* it was not run to its end */
        c->ways->end(c, r);
    return guard_leave(comm, r);
}

int tutti_all_gather_v_at(const char *site, const void *send, size_t sendcount, void *const recv[],
                          const size_t counts[], tutti_type type, tutti_comm *comm,
                          const tutti_call *call)
{
    struct coll c;
    check_describe(&c, send, NULL, 0, type, TUTTI_SUM, 0);
    c.lists = (struct vector_args){
        .n = 1, .send = &send, .send_counts = &sendcount, .recv = recv, .recv_counts = counts
    };
    return uneven(site, comm, &c, KIND_ALL_GATHER_V, call);
}

int tutti_gather_v_at(const char *site, const void *send, size_t sendcount, void *const recv[],
                      const size_t counts[], tutti_type type, int root, tutti_comm *comm,
                      const tutti_call *call)
{
    struct coll c;
    check_describe(&c, send, NULL, 0, type, TUTTI_SUM, root);
    c.lists = (struct vector_args){
        .n = 1, .send = &send, .send_counts = &sendcount, .recv = recv, .recv_counts = counts
    };
    return uneven(site, comm, &c, KIND_GATHER_V, call);
}

int tutti_scatter_v_at(const char *site, const void *const send[], const size_t counts[],
                       void *recv, size_t recvcount, tutti_type type, int root, tutti_comm *comm,
                       const tutti_call *call)
{
    struct coll c;
    check_describe(&c, NULL, recv, 0, type, TUTTI_SUM, root);
    c.lists = (struct vector_args){
        .n = 1, .send = send, .send_counts = counts, .recv = &recv, .recv_counts = &recvcount
    };
    return uneven(site, comm, &c, KIND_SCATTER_V, call);
}

int tutti_reduce_scatter_v_at(const char *site, const void *const send[], const size_t counts[],
                              void *recv, tutti_type type, tutti_op op, tutti_comm *comm,
                              const tutti_call *call)
{
    struct coll c;
    check_describe(&c, NULL, recv, 0, type, op, 0);
    c.lists = (struct vector_args){
        .n = 1, .send = send, .send_counts = counts, .recv = &recv, .recv_counts = counts
    };
    return uneven(site, comm, &c, KIND_REDUCE_SCATTER_V, call);
}

int tutti_all_to_all_v_at(const char *site, const void *const send[], const size_t sendcounts[],
                          void *const recv[], const size_t recvcounts[], tutti_type type,
                          tutti_comm *comm, const tutti_call *call)
{
    struct coll c;
    check_describe(&c, NULL, NULL, 0, type, TUTTI_SUM, 0);
    c.lists = (struct vector_args){
        .n = 1, .send = send, .send_counts = sendcounts, .recv = recv, .recv_counts = recvcounts
    };
    return uneven(site, comm, &c, KIND_ALL_TO_ALL_V, call);
}

static int many_refuse(const char *site, tutti_comm *comm, const tutti_call *call, int error,
                       int buffers)
{
    guard_clear(call);
    int r = guard_enter(comm);
    if (r < 0)
        return r;
    if (error == -ENOMEM)
        guard_fail(comm, KIND_ALL_REDUCE_MANY, guard_site(comm, site), error,
                   "no memory for the list of %d buffers", buffers);
    else
        guard_refuse(comm, KIND_ALL_REDUCE_MANY, guard_site(comm, site),
                     buffers < 0 ? "%d buffers; expected 0 or more"
                                 : "the list of %d counts is NULL",
                     buffers);
    return guard_leave(comm, error);
}

int tutti_all_reduce_many_at(const char *site, const void *const send[], void *const recv[],
                             const size_t counts[], int buffers, tutti_type type, tutti_op op,
                             tutti_comm *comm, const tutti_call *call)
{
    CALLER_KEPT;
    struct coll c;
    if (buffers < 0 || (buffers > 0 && !counts))
        return many_refuse(site, comm, call, -EINVAL, buffers);
    size_t *first = malloc(((size_t)buffers + 1) * sizeof *first), none = 0;
    const void *no_send = NULL;
    void *no_recv = NULL;
    const size_t nothing[2] = { 0, 0 };
    if (!first)
        return many_refuse(site, comm, call, -ENOMEM, buffers);
    first[0] = 0;
    for (int i = 0; i < buffers; i++)
        first[i + 1] = first[i] + counts[i];
    check_describe(&c, NULL, NULL, 0, type, op, 0);
    c.lists = (struct vector_args){ buffers, send, counts, recv, counts, first, 0 };
    if (buffers == 0)                                /* nothing to add, but all ranks come */
        c.lists = (struct vector_args){ 1, &no_send, &none, &no_recv, &none, nothing, 0 };
    int r = uneven(site, comm, &c, KIND_ALL_REDUCE_MANY, call);
    free(first);
    return r;
}

int tutti_all_gather_v(const void *send, size_t sendcount, void *const recv[],
                       const size_t counts[], tutti_type type, tutti_comm *comm,
                       const tutti_call *call)
{
    return tutti_all_gather_v_at(NULL, send, sendcount, recv, counts, type, comm, call);
}

int tutti_gather_v(const void *send, size_t sendcount, void *const recv[], const size_t counts[],
                   tutti_type type, int root, tutti_comm *comm, const tutti_call *call)
{
    return tutti_gather_v_at(NULL, send, sendcount, recv, counts, type, root, comm, call);
}

int tutti_scatter_v(const void *const send[], const size_t counts[], void *recv, size_t recvcount,
                    tutti_type type, int root, tutti_comm *comm, const tutti_call *call)
{
    return tutti_scatter_v_at(NULL, send, counts, recv, recvcount, type, root, comm, call);
}

int tutti_reduce_scatter_v(const void *const send[], const size_t counts[], void *recv,
                           tutti_type type, tutti_op op, tutti_comm *comm, const tutti_call *call)
{
    return tutti_reduce_scatter_v_at(NULL, send, counts, recv, type, op, comm, call);
}

int tutti_all_to_all_v(const void *const send[], const size_t sendcounts[], void *const recv[],
                       const size_t recvcounts[], tutti_type type, tutti_comm *comm,
                       const tutti_call *call)
{
    return tutti_all_to_all_v_at(NULL, send, sendcounts, recv, recvcounts, type, comm, call);
}

int tutti_all_reduce_many(const void *const send[], void *const recv[], const size_t counts[],
                          int buffers, tutti_type type, tutti_op op, tutti_comm *comm,
                          const tutti_call *call)
{
    return tutti_all_reduce_many_at(NULL, send, recv, counts, buffers, type, op, comm, call);
}
