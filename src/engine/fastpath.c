/* Leaves the fast path: turns its operation into one of the state machine. These are no inline
 * functions, because they are rare and need struct coll. Cost: to fill in a struct coll, and to
 * correct figures that were counted too early. */
#include "engine/fastpath.h"

#include "os/caller.h"
#include "watch/drive.h"

void fast_adopt(struct tutti_comm *comm, struct coll *c, struct fast_saved s, enum kind kind,
                int64_t timeout_ns)
{
    struct watch *w = &comm->watch;
    if (s.wakes)
        watch_wake(w, comm->seq);
    operation_describe(comm, c, comm->seq, kind, s.site, timeout_ns);
    /* operation_end counts it, and its bytes. */
    journal_count(w, FIGURE_OPERATIONS, (uint64_t)-1);
    journal_count(w, FIGURE_BYTES, -(uint64_t)c->bytes);
    c->op.keep = false;
    c->op.next = s.next;
    c->op.pauses = s.pauses;
    c->phase = GATE_WAIT;
}

int fast_resume(struct tutti_comm *comm, struct coll *c, struct fast_saved s, enum kind kind,
                int64_t timeout_ns)
{
    CALLER_KEPT;
    fast_adopt(comm, c, s, kind, timeout_ns);
    return operation_end(c, drive_to_end(&c->op));
}
