/* Central: one counter says when all ranks have come, one sense word releases all. With more ranks
 * than CPUs it beats the flags: a rank that gets its turn on a CPU reads one word instead of N.
 * Each rank still stores its line, before the counter, and only the lines decide: the counter says
 * when to look, the sense says which ranks to wake. A rank that sees by the lines that all are
 * there raises the sense, so a rank that dies between its line and the counter delays no other.
 * (The central sense-reversing barrier as in Mellor-Crummey and Scott, 1991; here the sense is the
 * operation's number, and counter and sense only grow.)
 *
 * E20 sense: a rank that has seen all lines stores sense = k (release); for a reader that loads k
 *     or more (acquire), C(k) holds. */
#include "coll/algorithms.h"

#include "watch/journal.h"

static void central_release(struct watch *w, uint64_t seq)
{
    store_fence64(&w->slot->sense, seq);                    /* E20 release, E2 fence */
    if (load_relaxed32(&w->slot->sense_sleepers))           /* relaxed: E2, ordered by the fence */
        w->ways->wake(w->ways->arg, low_half(&w->slot->sense), INT32_MAX);
}

int barrier_central_advance(struct op *op)
{
    struct coll *c = (struct coll *)op;
    struct watch *w = op->watch;
    bool look = c->phase != GATE_START;
    if (c->phase == GATE_START) {
        journal_arrive(w, &op->claim);
        c->phase = GATE_WAIT;
        c->comm->coll.centrals++;
        look = fetch_add64(&w->slot->counter, 1) + 1 == c->comm->coll.centrals * w->size;
    }
    if (load_acquire64(&w->slot->sense) >= op->claim.seq)   /* E20 acquire */
        return DONE;
    if (look && watch_all_arrived(op) == DONE) {
        central_release(w, op->claim.seq);
        return DONE;
    }
    if (!look || op->wait.value != UINT64_MAX)              /* not a mismatch: wait for the sense */
        op->wait = (struct wait){ .word = &w->slot->sense, .value = op->claim.seq, .owner = -1 };
    return WAITING;
}
