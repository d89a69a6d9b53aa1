/* once, first, turn, seed: check the arguments and call order/. None is a collective. call.work is
 * refused: it would start one of these and return. */
#define TUTTI_NO_SITES
#include "engine/guard.h"
#include "order/order.h"
#include "os/caller.h"

static int order_enter(struct tutti_comm *comm, enum kind kind, const char *site, const char *key,
                       const tutti_call *call, uint32_t *number)
{
    guard_clear(call);
    int r = guard_enter(comm);
    if (r < 0)
        return r;
    *number = guard_site(comm, site);
    if (call && call->work)
        r = guard_refuse(comm, kind, *number, "call.work: this call cannot be left under way");
    if (r == 0)
        r = guard_call(comm, kind, *number, call);
    if (r == 0 && (!key || !*key))
        r = guard_refuse(comm, kind, *number, "the key is %s", key ? "empty" : "NULL");
    if (r == 0)
        r = guard_operation(comm, kind, *number);
    return r < 0 ? guard_leave(comm, r) : 0;
}

static int64_t order_patience(const tutti_call *call)
{
    return call && call->timeout_ms > 0 ? timeout_give(call->timeout_ms) : -1;
}

int tutti_once_at(const char *site, const char *key, int (*fn)(void *), void *arg, tutti_comm *comm,
                  const tutti_call *call)
{
    CALLER_KEPT;
    uint32_t number;
    int r = order_enter(comm, KIND_ONCE, site, key, call, &number);
    if (r < 0)
        return r;
    if (!fn)
        return guard_leave(comm, guard_refuse(comm, KIND_ONCE, number, "the function is NULL"));
    struct tutti_comm *outer = comm_callback;
    comm_callback = comm;
    r = order_once(comm, number, key, fn, arg, order_patience(call));
    comm_callback = outer;
    return guard_leave(comm, r);
}

int tutti_first_begin_at(const char *site, const char *key, tutti_comm *comm,
                         const tutti_call *call)
{
    CALLER_KEPT;
    uint32_t number;
    int r = order_enter(comm, KIND_FIRST_BEGIN, site, key, call, &number);
    return r < 0 ? r
                 : guard_leave(comm, order_first_begin(comm, number, key, order_patience(call)));
}

int tutti_first_end_at(const char *site, const char *key, int error, tutti_comm *comm)
{
    CALLER_KEPT;
    int r = guard_enter(comm);
    if (r < 0)
        return r;
    uint32_t number = guard_site(comm, site);
    if (comm_callback == comm)                      /* from `done` */
        return guard_leave(comm, -EDEADLK);
    if (!key || !*key)
        return guard_leave(comm,
                           guard_refuse(comm, KIND_FIRST_END, number, "the key is %s",
                                        key ? "empty" : "NULL"));
    /* allowed on a broken comm: the others may wait for it */
    return guard_leave(comm, order_first_end(comm, number, key, error));
}

int tutti_turn_begin_at(const char *site, tutti_comm *comm, const tutti_call *call)
{
    CALLER_KEPT;
    uint32_t number;
    int r = order_enter(comm, KIND_TURN_BEGIN, site, "turn", call, &number);
    return r < 0 ? r : guard_leave(comm, order_turn_begin(comm, number, guard_timeout(comm, call)));
}

int tutti_turn_end_at(const char *site, tutti_comm *comm)
{
    CALLER_KEPT;
    int r = guard_enter(comm);
    if (r < 0)
        return r;
    return guard_leave(comm,
                       comm_callback == comm ? -EDEADLK
                                             : order_turn_end(comm, guard_site(comm, site)));
}

uint64_t tutti_seed_at(const char *site, uint64_t base, const tutti_comm *comm)
{
    (void)site;
    return order_seed(base, comm ? comm->watch.me : 0);
}

int tutti_once(const char *key, int (*fn)(void *), void *arg, tutti_comm *comm,
               const tutti_call *call)
{
    return tutti_once_at(NULL, key, fn, arg, comm, call);
}

int tutti_first_begin(const char *key, tutti_comm *comm, const tutti_call *call)
{
    return tutti_first_begin_at(NULL, key, comm, call);
}

int tutti_first_end(const char *key, int error, tutti_comm *comm)
{
    return tutti_first_end_at(NULL, key, error, comm);
}

int tutti_turn_begin(tutti_comm *comm, const tutti_call *call)
{
    return tutti_turn_begin_at(NULL, comm, call);
}

int tutti_turn_end(tutti_comm *comm) { return tutti_turn_end_at(NULL, comm); }

uint64_t tutti_seed(uint64_t base, const tutti_comm *comm)
{
    return tutti_seed_at(NULL, base, comm);
}
