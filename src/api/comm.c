/* Comms: their ranks, and which of them are gone; how comms are made, broken and freed. */
#define TUTTI_NO_SITES
#include "engine/guard.h"
#include "api/world.h"
#include "engine/queue.h"
#include "gpu/device_memory.h"
#include "order/order.h"
#include "os/caller.h"
#include "p2p/p2p.h"
#include "base/clock.h"
#include "watch/death.h"
#include "watch/journal.h"

#include <stdlib.h>

int tutti_rank(const tutti_comm *comm)
{
    if (comm && *comm->fork_word == 1)
        guard_aside(comm);
    return comm ? (int)comm->watch.me : -EINVAL;
}

int tutti_size(const tutti_comm *comm)
{
    if (comm && *comm->fork_word == 1)
        guard_aside(comm);
    return comm ? (int)comm->watch.size : -EINVAL;
}

int tutti_comm_split_at(const char *site, tutti_comm *parent, int color, int key, tutti_comm **comm)
{
    CALLER_KEPT;
    int r = guard_enter(parent);
    if (r < 0)
        return r;
    uint32_t number = guard_site(parent, site);
    if (!comm)
        return guard_leave(parent,
                           guard_refuse(parent, KIND_SPLIT, number,
                                        "comm is NULL; give the address of a tutti_comm *"));
    *comm = NULL;
    r = guard_operation(parent, KIND_SPLIT, number);
    if (r == 0)
        r = queue_drain(parent, KIND_SPLIT, number);
    if (r == 0)
        r = comm_split(parent, number, color, key, comm);
    return guard_leave(parent, r);
}

static int create_check(tutti_comm *parent, uint32_t site, const int ranks[], int size,
                        tutti_comm **comm)
{
    uint32_t world = parent->watch.size;
    if (!comm || !ranks)
        return guard_refuse(parent, KIND_CREATE, site, "%s is NULL", comm ? "ranks" : "comm");
    if (size < 1 || (uint32_t)size > world)
        return guard_refuse(parent, KIND_CREATE, site, "size %d; expected 1 to %u", size, world);
    bool listed = false;
    for (int i = 0; i < size; i++) {
        if (ranks[i] < 0 || (uint32_t)ranks[i] >= world)
            return guard_refuse(parent, KIND_CREATE, site, "ranks[%d] is %d; there are 0 to %u", i,
                                ranks[i], world - 1);
        for (int j = 0; j < i; j++)
            if (ranks[j] == ranks[i])
                return guard_refuse(parent, KIND_CREATE, site, "rank %d is listed twice", ranks[i]);
        listed |= (uint32_t)ranks[i] == parent->watch.me;
    }
    return listed ? 0
                  : guard_refuse(parent, KIND_CREATE, site,
                                 "this rank, %u, is not in the list; only those listed call it",
                                 parent->watch.me);
}

int tutti_comm_create_at(const char *site, tutti_comm *parent, const int ranks[], int size,
                         tutti_comm **comm)
{
    CALLER_KEPT;
    int r = guard_enter(parent);
    if (r < 0)
        return r;
    uint32_t number = guard_site(parent, site);
    if (comm)
        *comm = NULL;
    r = create_check(parent, number, ranks, size, comm);
    if (r == 0)
        r = guard_operation(parent, KIND_CREATE, number);
    if (r == 0)
        r = comm_create(parent, number, ranks, size, comm);
    return guard_leave(parent, r);
}

/* May run in a signal handler: no lock, no memory. */
int tutti_comm_abort_at(const char *site, tutti_comm *comm, const char *why)
{
    CALLER_KEPT;
    (void)site;
    if (!comm)
        return -EINVAL;
    if (*comm->fork_word != 1)
        return -ECHILD;
    comm_abort(comm, why);
    return 0;
}

int tutti_comm_free(tutti_comm *comm)
{
    CALLER_KEPT;
    if (!comm)
        return -EINVAL;
    if (*comm->fork_word != 1)
        return -ECHILD;
    if (comm == comm->world->whole) {
        comm_explain(comm, "comm_free: this is a world; tutti_finalize frees it");
        return -EINVAL;
    }
    if (comm->feed) {
        comm_explain(comm, "comm_free: this is the comm of a queue; tutti_queue_free frees it");
        return -EINVAL;
    }
    guard_aside(comm);
    if (guard_nested(comm))
        return -EDEADLK;
    if (load_acquire32(&comm->engine.busy))
        return guard_busy(comm);
    if (queue_under_way(comm) || p2p_under_way(comm)) {
        comm_explain(comm, "comm_free: work is under way on this comm; wait for it first");
        return -EBUSY;
    }
    progress_quiesce(comm->world);
    device_memory_leave(comm->world, false);
    comm_aborted(comm);
    order_forget(comm);
    p2p_close(comm);
    comm_drop(comm);
    return 0;
}

int tutti_failed(const tutti_comm *comm, int ranks[], int most)
{
    CALLER_KEPT;
    if (!comm || most < 0 || (most > 0 && !ranks))
        return -EINVAL;
    if (*comm->fork_word != 1)
        return -ECHILD;
    guard_aside(comm);
    int n = 0;
    for (uint32_t p = 0; p < comm->watch.size; p++) {
        if (p == comm->watch.me)
            continue;
        /* By the mark, which whoever waits for a rank sets: what is known, and no system call. */
        /* relaxed: sticky, and all who write it say the same */
        /* E7 acquire */
        bool gone = load_relaxed8(&comm->watch.lost[p]) || death_of(comm->watch.seats[p]) != GONE_NO
            || (load_acquire32(&comm->watch.members[p].quit) & (QUIT_FREED | QUIT_LEFT));
        if (gone && n++ < most)
            ranks[n - 1] = (int)p;
    }
    return n;
}

int tutti_set_timeout(tutti_comm *comm, int timeout_ms)
{
    CALLER_KEPT;
    if (!comm)
        return -EINVAL;
    if (*comm->fork_word != 1)
        return -ECHILD;
    guard_aside(comm);
    comm->watch.timeout_ns = timeout_ms == 0 ? comm->world->timeout_ns : timeout_give(timeout_ms);
    return 0;
}

int tutti_finalize_at(const char *site, tutti_comm *world)
{
    CALLER_KEPT;
    if (!world)
        return -EINVAL;
    if (*world->fork_word != 1)
        return -ECHILD;
    if (world != world->world->whole) {
        comm_explain(world,
                     "finalize: this is not the world but a comm of it; tutti_comm_free frees it");
        return -EINVAL;
    }
    if (guard_nested(world))
        return -EDEADLK;
    if (!queue_under_way(world) && !load_acquire32(&world->engine.busy)) {
        uint64_t tick = clock_tick();       /* peers that wait for us later read where we left */
        journal_begin(&world->watch, 0, fingerprint_make(KIND_FINALIZE, 0, 0, 0, 0), 0,
                      guard_site(world, site), tick);
        journal_end(&world->watch, 0, tick);
    }
    return world_close(world);
}

int tutti_comm_split(tutti_comm *parent, int color, int key, tutti_comm **comm)
{
    return tutti_comm_split_at(NULL, parent, color, key, comm);
}

int tutti_comm_create(tutti_comm *parent, const int ranks[], int size, tutti_comm **comm)
{
    return tutti_comm_create_at(NULL, parent, ranks, size, comm);
}

int tutti_comm_abort(tutti_comm *comm, const char *why)
{
    return tutti_comm_abort_at(NULL, comm, why);
}

int tutti_finalize(tutti_comm *world) { return tutti_finalize_at(NULL, world); }
