/* Operations of the caller's own. Making one is a collective, so that a number means the same
 * operation on all ranks. */
#define TUTTI_NO_SITES
#include "engine/guard.h"
#include "engine/run.h"
#include "api/check.h"
#include "engine/queue.h"
#include "base/error.h"
#include "coll/algorithms.h"
#include "os/caller.h"

#include <stdlib.h>
#include <string.h>

enum { ROOM_FIRST = 16 };

static int op_room(struct tutti_comm *comm, uint32_t number)
{
    if (number < comm->api.ops_room)
        return 0;
    uint32_t room = comm->api.ops_room ? comm->api.ops_room : ROOM_FIRST;
    while (room <= number)
        room *= 2;
    struct comm_op *more = realloc(comm->api.ops, room * sizeof *more);
    if (!more)
        return -ENOMEM;
    memset(more + comm->api.ops_room, 0, (room - comm->api.ops_room) * sizeof *more);
    comm->api.ops = more;
    comm->api.ops_room = room;
    return 0;
}

/* The next number from `from` on that is free on this rank, as a distance from the last one made;
 * OPS_MAX: none. */
static uint32_t op_next(const struct tutti_comm *comm, uint32_t from)
{
    while (from < OPS_MAX) {
        uint32_t number = (comm->api.ops_made + from) % OPS_MAX;
        if (number >= comm->api.ops_room || !comm->api.ops[number].fn)
            break;
        from++;
    }
    return from;
}

/* Each rank frees operations for itself, so a number that is free here may be in use on a peer. All
   ranks offer their next free number, and repeat from the furthest offer until all are equal;
   nearly always at once. A failure on one rank must be an error for all: the largest errno is the
   result. */
static int op_agree(struct tutti_comm *comm, uint32_t site, uint32_t *number)
{
    for (uint32_t from = 0;;) {
        from = op_next(comm, from);
        *number = (comm->api.ops_made + from) % OPS_MAX;
        int r = from == OPS_MAX ? -ENOSPC : op_room(comm, *number);
        /* the error, and its rank */
        int32_t trouble = r < 0 ? -r * RANKS_MAX + (int32_t)comm->watch.me : 0;
        /* the error, the furthest, the nearest */
        int32_t most[3] = { trouble, (int32_t)from, -(int32_t)from };
        struct coll c;
        check_describe(&c, most, most, 3, TUTTI_I32, TUTTI_MAX, 0);
        c.width = sizeof most[0];
        c.bytes = sizeof most;
        c.fold.kernel = fold_find(TUTTI_I32, TUTTI_MAX, NULL);
        c.algorithm = &algorithm_table[ALGORITHM_OP_CREATE];
        r = run_collective(comm, &c, KIND_OP_CREATE, site, NULL);
        if (r < 0)
            return r;
        if (most[0]) {
            int error = most[0] / RANKS_MAX;
            comm_explain(comm, "op_create: rank %d has no room for another operation: %s",
                         most[0] % RANKS_MAX,
                         error == ENOSPC
                             ? "all 7168 numbers are in use there; free those that are not needed"
                             : error_system(error));
            return -error;
        }
        if (most[1] == -most[2]) {
            comm->api.ops_made = (comm->api.ops_made + from + 1) % OPS_MAX;
            return 0;
        }
        from = (uint32_t)most[1];
    }
}

int tutti_op_create_at(const char *site, void (*fn)(const void *, void *, size_t, tutti_type),
                       int commutative, tutti_op *op, tutti_comm *comm)
{
    CALLER_KEPT;
    /* it is applied in rank order in any case, so that the bits are the same in every run */
    (void)commutative;
    int r = guard_enter(comm);
    if (r < 0)
        return r;
    uint32_t where = guard_site(comm, site), number;
    if (!fn || !op)
        return guard_leave(comm,
                           guard_refuse(comm, KIND_OP_CREATE, where, "the %s is NULL",
                                        fn ? "address for the operation" : "function"));
    r = op_agree(comm, where, &number);
    if (r == 0) {
        comm->api.ops[number] = (struct comm_op){ fn };
        *op = (tutti_op)(TUTTI_OP_USER + number);
    }
    return guard_leave(comm, r);
}

int tutti_op_free_at(const char *site, tutti_op *op, tutti_comm *comm)
{
    CALLER_KEPT;
    int r = guard_enter(comm);
    if (r < 0)
        return r;
    uint32_t number = op ? (uint32_t)*op - TUTTI_OP_USER : UINT32_MAX;
    if (number >= comm->api.ops_room || !comm->api.ops[number].fn)
        r = guard_refuse(comm, KIND_OP_CREATE, guard_site(comm, site), "op_free: %s",
                         op ? "this is no operation of this comm" : "the address is NULL");
    else if (queue_under_way(comm)) {
        comm_explain(comm,
                     "op_free: work is under way on this comm, which may use it; wait for it "
                     "first");
        r = -EBUSY;
    } else {
        comm->api.ops[number].fn = NULL;
        *op = (tutti_op)0;
    }
    return guard_leave(comm, r);
}

int tutti_op_create(void (*fn)(const void *, void *, size_t, tutti_type), int commutative,
                    tutti_op *op, tutti_comm *comm)
{
    return tutti_op_create_at(NULL, fn, commutative, op, comm);
}

int tutti_op_free(tutti_op *op, tutti_comm *comm) { return tutti_op_free_at(NULL, op, comm); }
