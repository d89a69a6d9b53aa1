/* The barrier. By the flags it needs no description of data; to fill that in was half of its
 * instructions.
 * Cost: some 160 instructions and N - 1 line transfers. */
#define TUTTI_NO_SITES
#include "api/check.h"
#include "engine/guard.h"
#include "engine/fastpath.h"
#include "engine/run.h"

static __attribute__((noinline)) int barrier_any(struct tutti_comm *comm, uint32_t site,
                                                 const tutti_call *call)
{
    struct coll c;
    check_describe(&c, NULL, NULL, 0, TUTTI_I8, TUTTI_SUM, 0);
    return run_collective(comm, &c, KIND_BARRIER, site, call);
}

static __attribute__((noinline))
int barrier_resume(struct tutti_comm *comm, struct fast_saved s, int64_t timeout_ns)
{
    struct coll c;
    check_describe(&c, NULL, NULL, 0, TUTTI_I8, TUTTI_SUM, 0);
    return fast_resume(comm, &c, s, KIND_BARRIER, timeout_ns);
}

/* Called after the checks. */
static inline __attribute__((always_inline)) int barrier(struct tutti_comm *comm, uint32_t site,
                                                         const tutti_call *call)
{
    static const struct fast_op op = { .put = NULL };
    struct fast s;
    uint64_t stamp = fingerprint_make(KIND_BARRIER, TUTTI_I8, TUTTI_SUM, 0, 0);
    fast_begin(comm, &s, KIND_BARRIER, stamp, 0, 0, site, ALGORITHM_BARRIER_FLAGS + 1);
    if (fast_run(comm, &op, &s, NULL) != FAST_DONE)
        return barrier_resume(comm, fast_saved(&s), guard_timeout(comm, call));
    return 0;
}

int tutti_barrier_at(const char *site, tutti_comm *comm, const tutti_call *call)
{
    guard_clear(call);
    int r = guard_enter(comm);
    if (r < 0)
        return r;
    uint32_t number = guard_site(comm, site);
    if (call)
        r = call->stream ? guard_refuse(comm, KIND_BARRIER, number,
                                        "call.stream is for device buffers; a barrier has none")
                         : guard_call(comm, KIND_BARRIER, number, call);
    if (r == 0 && fast_may(comm) && !(call && call->work))
        return guard_leave(comm, barrier(comm, number, call));
    return guard_leave(comm, r < 0 ? r : barrier_any(comm, number, call));
}

int tutti_barrier(tutti_comm *comm, const tutti_call *call)
{
    return tutti_barrier_at(NULL, comm, call);
}
