/* Operations of the caller's own. Making one is a collective, so that a number means the same operation on all ranks. */
#define TUTTI_NO_SITES
#include "api/enter.h"
#include "api/run.h"
#include "api/check.h"
#include "api/work.h"

#include <stdlib.h>
#include <string.h>

enum { ROOM_FIRST = 16 };

static int op_room(struct tutti_comm *comm, uint32_t number)
{
    if (number < comm->ops_room)
        return 0;
    uint32_t room = comm->ops_room ? 2 * comm->ops_room : ROOM_FIRST;
    struct comm_op *more = realloc(comm->ops, room * sizeof *more);
    if (!more)
        return -ENOMEM;
    memset(more + comm->ops_room, 0, (room - comm->ops_room) * sizeof *more);
    comm->ops = more;
    comm->ops_room = room;
    return 0;
}

int tutti_op_create_at(const char *site, void (*fn)(const void *, void *, size_t, tutti_type), int commutative, tutti_op *op, tutti_comm *comm)
{
    int r = enter(comm);
    if (r < 0)
        return r;
    uint32_t where = comm_site(comm, site);
    if (!fn || !op)
        return enter_leave(comm, enter_refuse(comm, KIND_OP_CREATE, where, "the %s is NULL", fn ? "address for the operation" : "function"));
    uint32_t number = comm->ops_made % OPS_MAX;
    r = op_room(comm, number);
    if (r == 0 && comm->ops[number].fn) {
        comm_explain(comm, "op_create: number %u is still in use after %u operations; free those that are not needed", number, comm->ops_made);
        r = -ENOSPC;
    }
    /* What stands in this rank's way must be everybody's error: the largest of all is the answer. */
    struct coll c;
    int32_t trouble = -r;
    check_describe(&c, &trouble, &trouble, 1, TUTTI_I32, TUTTI_MAX, 0);
    c.width = c.bytes = sizeof trouble;
    c.fold = fold_find(TUTTI_I32, TUTTI_MAX, NULL);
    c.algorithm = &op_create_line;
    r = run_collective(comm, &c, KIND_OP_CREATE, where, NULL);
    if (r == 0 && trouble) {
        comm_explain(comm, "op_create: a rank has no room for another operation: %s", strerror(trouble));
        r = -trouble;
    }
    if (r == 0) {
        comm->ops[number] = (struct comm_op){ fn, commutative };
        comm->ops_made++;
        *op = (tutti_op)(TUTTI_OP_USER + number);
    }
    return enter_leave(comm, r);
}

int tutti_op_free_at(const char *site, tutti_op *op, tutti_comm *comm)
{
    int r = enter(comm);
    if (r < 0)
        return r;
    uint32_t number = op ? (uint32_t)*op - TUTTI_OP_USER : UINT32_MAX;
    if (number >= comm->ops_room || !comm->ops[number].fn)
        r = enter_refuse(comm, KIND_OP_CREATE, comm_site(comm, site), "op_free: %s", op ? "this is no operation of this comm" : "the address is NULL");
    else if (work_under_way(comm)) {
        comm_explain(comm, "op_free: work is under way on this comm, which may use it; wait for it first");
        r = -EBUSY;
    } else {
        comm->ops[number].fn = NULL;
        *op = (tutti_op)0;
    }
    return enter_leave(comm, r);
}

int tutti_op_create(void (*fn)(const void *, void *, size_t, tutti_type), int commutative, tutti_op *op, tutti_comm *comm)
{
    return tutti_op_create_at(NULL, fn, commutative, op, comm);
}

int tutti_op_free(tutti_op *op, tutti_comm *comm) { return tutti_op_free_at(NULL, op, comm); }
