/* Flags: each rank stores its own arrival line and reads the lines of all others. One hop, N - 1
 * line transfers a rank, no shared counter: the fastest if each rank has a CPU. (The flag variant
 * of the sense-reversing barrier of Hensgen, Finkel and Manber, 1988, with the whole operation
 * number as its sense, so nothing is ever reset.) */
#include "coll/algorithms.h"

#include "watch/journal.h"

int barrier_flags_advance(struct op *op)
{
    struct coll *c = (struct coll *)op;
    if (c->phase == GATE_START) {
        journal_arrive(op->watch, &op->claim);
        c->phase = GATE_WAIT;
    }
    return watch_all_arrived(op);
}
