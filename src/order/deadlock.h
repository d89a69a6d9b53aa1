/* Job: find that a key's runner waits in a collective for a rank that waits for the key.
 * Owns: key.deadlocked, by whoever finds it.
 * Never: other cycles.
 *
 * Both sides look: the runner when it enters a collective, the waiter before each slice of its sleep. What they find is a stable fact:
 * the waiter has not arrived at that operation and will not while it sleeps, so the operation cannot end, nor can the key. */
#ifndef TUTTI_ORDER_DEADLOCK_H
#define TUTTI_ORDER_DEADLOCK_H

#include "group/comm.h"

/* This rank, which runs keys, is about to enter a collective of comm. True: it is one; the waiters are told and the comm is marked. */
bool deadlock_by_runner(struct tutti_comm *comm);

/* This rank waits on `comm` for a key run by world rank `runner`. True: that one is in a collective that needs us; likewise. */
bool deadlock_by_waiter(struct tutti_comm *comm, struct key *key, uint32_t runner_world);

void deadlock_tell(const struct arena *arena, struct key *key);      /* wakes the key's waiters with the news */

#endif
