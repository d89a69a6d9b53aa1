/* The collectives: check the arguments, describe the operation, hand it to run. All checks are done before anything is touched. */
#define TUTTI_NO_SITES
#include "api/enter.h"
#include "api/run.h"
#include "coll/select.h"

#include <string.h>

/* What the caller said; the rest of struct coll is run's and the algorithm's to fill in. */
static inline void describe(struct coll *c, const void *send, void *recv, size_t count, tutti_type type, tutti_op op, int root)
{
    c->send = send;
    c->recv = recv;
    c->count = count;
    c->bytes = 0;
    c->width = 1;
    c->type = type;
    c->oper = op;
    c->root = root;
    c->fold = NULL;
    c->algorithm = NULL;
}

int tutti_barrier_at(const char *site, tutti_comm *comm, const tutti_call *call)
{
    enter_clear(call);
    int r = enter(comm);
    if (r < 0)
        return r;
    uint32_t number = comm_site(comm, site);
    r = enter_call(comm, KIND_BARRIER, number, call);
    if (r < 0)
        return enter_leave(comm, r);
    struct coll c;
    describe(&c, NULL, NULL, 0, TUTTI_I8, TUTTI_SUM, 0);
    return enter_leave(comm, run_collective(comm, &c, KIND_BARRIER, number, call));
}

static bool overlaps(const void *a, const void *b, size_t bytes)
{
    uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;
    return x != y && x < y + bytes && y < x + bytes;
}

static int check_fold(struct tutti_comm *comm, struct coll *c, enum kind kind, uint32_t site)
{
    const char *why = NULL;
    c->fold = fold_find(c->type, c->oper, &why);
    return c->fold ? 0 : enter_refuse(comm, kind, site, "%s", why ? why : "this type has no such operation");
}

/* Type, count, root and operation: what the stamp says. */
static int check_shape(struct tutti_comm *comm, struct coll *c, enum kind kind, uint32_t site)
{
    c->width = fold_type_size(c->type);
    if (c->width == 0)
        return enter_refuse(comm, kind, site, "%d is no tutti_type", (int)c->type);
    if (c->type > TUTTI_BOOL)
        return enter_refuse(comm, kind, site, "type %s is not there yet", fold_type_name(c->type));
    if (c->count > PTRDIFF_MAX / c->width)
        return enter_refuse(comm, kind, site, "count %zu of %s is more than an address space holds", c->count, fold_type_name(c->type));
    if (c->root < 0 || (uint32_t)c->root >= comm->watch.size)
        return enter_refuse(comm, kind, site, "root %d is no rank of this comm; there are 0 to %u", c->root, comm->watch.size - 1);
    c->bytes = c->count * c->width;
    return kind == KIND_BROADCAST ? 0 : check_fold(comm, c, kind, site);
}

static int check_buffers(struct tutti_comm *comm, struct coll *c, enum kind kind, uint32_t site, int needs)
{
    if (c->count && (needs & 1) && !c->send)
        return enter_refuse(comm, kind, site, "the %sbuffer is NULL with count %zu", kind == KIND_BROADCAST ? "" : "send ", c->count);
    if (c->count && (needs & 2) && !c->recv)
        return enter_refuse(comm, kind, site, "the receive buffer is NULL with count %zu", c->count);
    if ((needs & 3) == 3 && overlaps(c->send, c->recv, c->bytes))
        return enter_refuse(comm, kind, site, "send and recv overlap; give the same buffer twice for in place, or two that do not touch");
    return 0;
}

/* The stamp of a call that can be remembered; 0: its fields do not fit a stamp exactly, so it says too little. */
static inline uint64_t shape_stamp(const struct coll *c, enum kind kind)
{
    if ((unsigned)c->type > TUTTI_BOOL || (unsigned)c->oper >= TUTTI_OP_USER || (unsigned)c->root >= RANKS_MAX || c->count >= STAMP_HASHED)
        return 0;
    return stamp_make(kind, c->type, c->oper, c->root, c->count);
}

/* All checks of a data collective. `send` and `recv` are NULL where this rank does not use them; needs: 1 send, 2 recv. What depends on
   the stamp alone is looked up where a call like it came before: programs repeat themselves, and this is a fifth of a small all_reduce. */
static int check_data(struct tutti_comm *comm, struct coll *c, enum kind kind, uint32_t site, const tutti_call *call, int needs)
{
    uint64_t stamp = shape_stamp(c, kind);
    struct shape *shape = &comm->shapes[(stamp ^ stamp >> 32 ^ stamp >> 58) % SHAPES];
    int r = 0;
    if (stamp && shape->stamp == stamp) {
        c->width = shape->width;
        c->bytes = shape->bytes;
        c->algorithm = shape->algorithm;
        c->fold = shape->fold;
    } else {
        r = check_shape(comm, c, kind, site);
        if (r == 0 && stamp) {
            c->algorithm = select_algorithm(comm->world->rules, kind, comm->crowded, c->bytes);
            *shape = (struct shape){ stamp, c->width, c->bytes, c->algorithm, c->fold };
        }
    }
    if (r == 0)
        r = check_buffers(comm, c, kind, site, needs);
    if (r < 0 || !call)
        return r;
    if (call->stream)
        return enter_refuse(comm, kind, site, "call.stream is for device buffers, which are not there yet");
    return enter_call(comm, kind, site, call);
}

int tutti_broadcast_at(const char *site, void *buf, size_t count, tutti_type type, int root, tutti_comm *comm, const tutti_call *call)
{
    enter_clear(call);
    int r = enter(comm);
    if (r < 0)
        return r;
    uint32_t number = comm_site(comm, site);
    struct coll c;
    describe(&c, buf, buf, count, type, TUTTI_SUM, root);
    r = check_data(comm, &c, KIND_BROADCAST, number, call, 3);
    if (r == 0)
        r = run_collective(comm, &c, KIND_BROADCAST, number, call);
    return enter_leave(comm, r);
}

int tutti_reduce_at(const char *site, const void *send, void *recv, size_t count, tutti_type type, tutti_op op, int root,
                    tutti_comm *comm, const tutti_call *call)
{
    enter_clear(call);
    int r = enter(comm);
    if (r < 0)
        return r;
    uint32_t number = comm_site(comm, site);
    struct coll c;
    describe(&c, send, recv, count, type, op, root);
    r = check_data(comm, &c, KIND_REDUCE, number, call, root >= 0 && (uint32_t)root == comm->watch.me ? 3 : 1);
    if (r == 0)
        r = run_collective(comm, &c, KIND_REDUCE, number, call);
    return enter_leave(comm, r);
}

int tutti_all_reduce_at(const char *site, const void *send, void *recv, size_t count, tutti_type type, tutti_op op,
                        tutti_comm *comm, const tutti_call *call)
{
    enter_clear(call);
    int r = enter(comm);
    if (r < 0)
        return r;
    uint32_t number = comm_site(comm, site);
    struct coll c;
    describe(&c, send, recv, count, type, op, 0);
    r = check_data(comm, &c, KIND_ALL_REDUCE, number, call, 3);
    if (r == 0)
        r = run_collective(comm, &c, KIND_ALL_REDUCE, number, call);
    return enter_leave(comm, r);
}

int tutti_barrier(tutti_comm *comm, const tutti_call *call) { return tutti_barrier_at(NULL, comm, call); }

int tutti_broadcast(void *buf, size_t count, tutti_type type, int root, tutti_comm *comm, const tutti_call *call)
{
    return tutti_broadcast_at(NULL, buf, count, type, root, comm, call);
}

int tutti_reduce(const void *send, void *recv, size_t count, tutti_type type, tutti_op op, int root, tutti_comm *comm, const tutti_call *call)
{
    return tutti_reduce_at(NULL, send, recv, count, type, op, root, comm, call);
}

int tutti_all_reduce(const void *send, void *recv, size_t count, tutti_type type, tutti_op op, tutti_comm *comm, const tutti_call *call)
{
    return tutti_all_reduce_at(NULL, send, recv, count, type, op, comm, call);
}
