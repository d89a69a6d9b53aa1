/* tutti's functions for the operations, blocking, and started and waited for; from private memory
 * or from the arena, as the job's pools lie. */
#include "reports/tutti_operations.h"

#include <string.h>
#include <tutti.h>

static size_t count(const struct rank *r) { return r->bytes / sizeof(float); }
static int next(const struct rank *r) { return (r->me + 1) % r->size; }
static int before(const struct rank *r) { return (r->me + r->size - 1) % r->size; }
static char *broadcast_buffer(const struct rank *r) { return r->me == 0 ? r->send : r->recv; }

/* NAME runs the function, NAME_start starts it and waits. */
#define BOTH(name, function, ...)                                                                  \
    static int name(struct rank *r) { return function(__VA_ARGS__, r->comm, NULL); }               \
    static int name##_start(struct rank *r)                                                        \
    {                                                                                              \
        tutti_work *work;                                                                          \
        tutti_call call = { .work = &work };                                                       \
        int error = function(__VA_ARGS__, r->comm, &call);                                         \
        return error < 0 ? error : tutti_wait(work, 0);                                            \
    }

BOTH(all_reduce, tutti_all_reduce, r->send, r->recv, count(r), TUTTI_F32, TUTTI_SUM)
BOTH(broadcast, tutti_broadcast, broadcast_buffer(r), count(r), TUTTI_F32, 0)
BOTH(reduce, tutti_reduce, r->send, r->recv, count(r), TUTTI_F32, TUTTI_SUM, 0)
BOTH(reduce_scatter, tutti_reduce_scatter, r->send, r->recv, count(r), TUTTI_F32, TUTTI_SUM)
BOTH(all_gather, tutti_all_gather, r->send, r->recv, count(r), TUTTI_F32)
BOTH(gather, tutti_gather, r->send, r->recv, count(r), TUTTI_F32, 0)
BOTH(scatter, tutti_scatter, r->send, r->recv, count(r), TUTTI_F32, 0)
BOTH(all_to_all, tutti_all_to_all, r->send, r->recv, count(r), TUTTI_F32)
BOTH(scan, tutti_scan, r->send, r->recv, count(r), TUTTI_F32, TUTTI_SUM)
BOTH(exscan, tutti_exscan, r->send, r->recv, count(r), TUTTI_F32, TUTTI_SUM)

static int barrier(struct rank *r)
{
    return tutti_barrier(r->comm, NULL);
}

static int barrier_start(struct rank *r)
{
    tutti_work *work;
    tutti_call call = { .work = &work };
    int error = tutti_barrier(r->comm, &call);
    return error < 0 ? error : tutti_wait(work, 0);
}

/* A send of up to 64 KiB does not wait for its receiver, so a program that exchanges so little
   sends and then receives. A larger one may, and is left under way meanwhile. */
enum { SENT_AT_ONCE = 64 << 10 };

static int sendrecv_start(struct rank *r)
{
    tutti_work *there, *here;
    tutti_call send = { .work = &there }, recv = { .work = &here };
    int error = tutti_send(r->send, count(r), TUTTI_F32, next(r), 0, r->comm, &send);
    if (error < 0)
        return error;
    error = tutti_recv(r->recv, count(r), TUTTI_F32, before(r), 0, NULL, r->comm, &recv);
    if (error == 0)
        error = tutti_wait(here, 0);
    int sent = tutti_wait(there, 0);
    return error < 0 ? error : sent;
}

static int sendrecv(struct rank *r)
{
    if (r->bytes > SENT_AT_ONCE)
        return sendrecv_start(r);
    int error = tutti_send(r->send, count(r), TUTTI_F32, next(r), 0, r->comm, NULL);
    return error < 0 ? error
                     : tutti_recv(r->recv, count(r), TUTTI_F32, before(r), 0, NULL, r->comm, NULL);
}

/* The lower rank of two sends first. work: of `call`, waited for; NULL: blocking. */
static int pingpong_with(struct rank *r, const tutti_call *call, tutti_work **work)
{
    int peer = operation_partner(r), error = 0;
    if (peer == r->me)
        memcpy(r->recv, r->send, r->bytes);
    for (int turn = 0; turn < 2 && peer != r->me && error == 0; turn++) {
        error = (turn == 0) == (r->me < peer)
            ? tutti_send(r->send, count(r), TUTTI_F32, peer, 0, r->comm, call)
            : tutti_recv(r->recv, count(r), TUTTI_F32, peer, 0, NULL, r->comm, call);
        if (work && error == 0)
            error = tutti_wait(*work, 0);
    }
    return error;
}

static int pingpong(struct rank *r) { return pingpong_with(r, NULL, NULL); }

static int pingpong_start(struct rank *r)
{
    tutti_work *work;
    return pingpong_with(r, &(tutti_call){ .work = &work }, &work);
}

const struct system tutti_system = SYSTEM_HAS_ALL;
