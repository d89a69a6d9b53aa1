/* Job: find that a key's runner waits in a collective for a rank that waits for the key.
 * Owns: key.deadlocked, by whoever finds it.
 * Never: other cycles.
 *
 * Both sides look: the runner when it enters a collective, the waiter before each slice of its sleep. What they find is a stable fact:
 * the waiter has not arrived at that operation, has not left it under way as work, and will not while it sleeps, so the operation
 * cannot end, nor can the key. The comm is marked before the waiters are told, and each of them marks its own hold on it before it
 * returns: else it could still arrive, and the operation would succeed. A runner that only left the operation under way waits for
 * nothing; it looks when it waits for the handle. */
#ifndef TUTTI_ORDER_DEADLOCK_H
#define TUTTI_ORDER_DEADLOCK_H

#include "group/comm.h"

/* This rank, which runs keys, is about to wait without end for operation seq of comm. True: a member waits for one of these keys; the comm
   is marked, and the waiters are told. */
bool deadlock_by_runner(struct tutti_comm *comm, uint64_t seq);

/* This rank waits on `comm` for a key run by world rank `runner`. True: that one is in a collective that needs us; likewise. */
bool deadlock_by_waiter(struct tutti_comm *comm, struct key *key, uint64_t state, uint32_t runner_world);

/* This rank was told: its comms that were marked are broken here, too. */
void deadlock_met(struct world *world);

#endif
