/* An exchange is an operation that carries nothing but its arrival lines: a barrier's price. */
#include "group/exchange.h"

#include "base/clock.h"
#include "base/error.h"
#include "watch/drive.h"
#include "watch/journal.h"

struct exchange { struct op op; bool arrived; };

static int exchange_advance(struct op *op)
{
    struct exchange *x = (struct exchange *)op;
    if (!x->arrived) {
        journal_arrive(op->watch, &op->claim);
        x->arrived = true;
    }
    return watch_all_arrived(op);
}

int comm_exchange(struct tutti_comm *comm, enum kind kind, uint32_t site, uint64_t first,
                  uint64_t second, uint64_t *seq)
{
    struct watch *w = &comm->watch;
    struct exchange x = {
        .op = { .watch = w, .advance = exchange_advance, .site = site, .timeout_ns = w->timeout_ns }
    };
    x.op.claim = (struct claim){
        .seq = ++comm->seq, .descriptor = fingerprint_make(kind, 0, 0, 0, 0)
    };
    struct arrival *mine = &w->mine->arrival[x.op.claim.seq & 1];
    store_relaxed64(&mine->payload[0], first);                       /* relaxed: E1 publishes it */
    store_relaxed64(&mine->payload[1], second);                      /* relaxed: E1 publishes it */
    journal_begin(w, x.op.claim.seq, x.op.claim.descriptor, 0, site, clock_tick());
    int r = drive_to_end(&x.op);
    if (r < 0)
        comm_explain_end(comm, &x.op, r);
    if (r == DAMAGED)
        comm_give_up(comm, comm_reason(-EIO));
    r = error_told(r);
    journal_end(w, r, clock_tick());
    *seq = x.op.claim.seq;
    return r;
}
