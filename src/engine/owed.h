/* Job: TUTTI_LEAVE: of two ranks, the one that only gives in a collective leaves it before the
 *      other one has come, and sees its end in its next call on the comm.
 * Owns: tutti_comm.engine.owed, owed_delay.
 * Never: changes what the other rank sees: it is told of a failure as ever.
 *
 * The rank that leaves has arrived, and what it gives lies in the arena; it reads nothing of the
 * other's. So the operation ends without it. Its next call asks for C(k) before it begins: the
 * protocol (watch/verdict.h) is the same, only the program runs meanwhile. What is given up is all
 * or none: the rank has had its 0 when the other one fails. Its next call fails then.
 *
 * A fence would wait until its stores are seen: of 4 KiB 0.05 us near, 0.2 far, for lines that the
 * other one has read last. So where the job has other communication to see to (options.progress),
 * the fence of E2 comes in its next call, before it looks at anything. Until then it may miss one
 * who is going to sleep just now. That one looks again by itself, for that communication, after
 * 20 us; in other jobs it would do so after a slice only, and there is the fence.
 *
 * The other one knows that nobody looks for it, so its look alone decides when the line moves. One
 * that comes too early takes the line away from who is about to write it: on a Zen 5 64 bytes then
 * take 0.155 us near in place of 0.13, and 0.52 far in place of 0.38. How long to wait is learned
 * from the looks: OWED_LONGER more after one that was too early, OWED_SHORTER less after one that
 * was not. So one in 33 is too early, and who finds all there waits for nothing soon. Where both
 * look for each other such a wait hovers where it hurts, and base/backoff makes trials instead. */
#ifndef TUTTI_ENGINE_OWED_H
#define TUTTI_ENGINE_OWED_H

#include "coll/coll.h"

enum { OWED_STEP = 16, OWED_LONGER = 32 * OWED_STEP, OWED_SHORTER = OWED_STEP,
       OWED_LONGEST = 640 * OWED_STEP, OWED_SOON = 4, OWED_LOOKED = 1024, OWED_SPINS = 256 };

enum owes { OWES_NOT, OWES_GIVER, OWES_TAKER };

/* What this rank is in a collective of that kind. */
static inline enum owes owes(const struct tutti_comm *comm, const struct coll *c, enum kind kind)
{
    if (!(comm->world->flags & TUTTI_LEAVE) || comm->watch.size != 2 || !c->bytes
        || (kind != KIND_BROADCAST && kind != KIND_REDUCE && kind != KIND_GATHER))
        return OWES_NOT;
    bool root = (uint32_t)c->root == comm->watch.me;
    return root == (kind == KIND_BROADCAST) ? OWES_GIVER
        : c->bytes <= OWED_LOOKED           ? OWES_TAKER
                                            : OWES_NOT;
}

static inline uint16_t *owed_delay(struct tutti_comm *comm, enum kind kind, size_t bytes)
{
    return &comm->engine.owed_delay[kind != KIND_BROADCAST][63 - __builtin_clzll(bytes)];
}

/* From how often this rank paused between its first look and the one that found the other. */
static inline void owed_learn(uint16_t *delay, uint32_t pauses)
{
    if (!pauses)
        *delay = (uint16_t)(*delay > OWED_SHORTER ? *delay - OWED_SHORTER : 0);
    else if (pauses <= OWED_SOON)      /* else the other one was late by itself */
        *delay = (uint16_t)(*delay + OWED_LONGER < OWED_LONGEST ? *delay + OWED_LONGER
                                                                : OWED_LONGEST);
}

/* This rank has arrived, and leaves. */
void owed_leave(struct tutti_comm *comm, const struct coll *c, uint32_t site);
/* What it had left: true: it has ended well. False: not yet, or not well; owed_end says. */
bool owed_over(struct tutti_comm *comm);
/* Waits for its end. 0, or the failure, reported as its own. */
int owed_end(struct tutti_comm *comm);

#endif
