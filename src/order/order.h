/* Job: once, first and turn: which rank runs first, and which next.
 * Owns: the keys' states with all ranks of the comm; member.turns and seat.waits_key of this rank.
 * Never: waits for all ranks: a rank that calls none of these delays no other.
 *
 * A key has two words: its state (version | runner | running), and the rounds done. A rank's n-th
 * call of a key asks for round n; it loads the state, then the rounds:
 *     rounds >= n              -> the round is done, return
 *     no rank runs             -> CAS: I run
 *     the runner is gone       -> CAS: I take over
 *     else                     -> sleep on the word, the runner's alive word and the comm's news
 * At its end the runner stores rounds = n, unless it failed, and frees the state by CAS. If it dies
 * between the two, its round is done, and the rank that takes over sees that in the rounds. Rounds
 * are done in order, because a rank asks for n only after n - 1 is done. watch/cycle finds a runner
 * and waiters that wait for each other.
 *
 * E14 key: a rank adds a key under join.lock: its text, then owner and ready (release); a finder
 *     loads ready (acquire), then the text.
 * E15 key state: the runner does the work, then stores rounds, then the state (release); a rank
 *     that loads rounds >= n (acquire) may use the result.
 * E19 turns: a rank ends its turn, then stores turns (release); the next rank loads it (acquire)
 *     and begins. */
#ifndef TUTTI_ORDER_ORDER_H
#define TUTTI_ORDER_ORDER_H

#include "group/comm.h"

/* Makes the private books: this rank's counts of calls. 0 or -ENOMEM. */
int  order_open(struct world *world);
/* Before the comm is freed here: this rank runs none of its keys any more. */
void order_forget(struct tutti_comm *comm);
void order_close(struct world *world);

/* All return their results as the public functions do; reports go to the comm. timeout_ns
 * < 0: none. */
int order_once(struct tutti_comm *comm, uint32_t site, const char *key, int (*fn)(void *arg),
               void *arg, int64_t timeout_ns);
int order_first_begin(struct tutti_comm *comm, uint32_t site, const char *key, int64_t timeout_ns);
int order_first_end(struct tutti_comm *comm, uint32_t site, const char *key, int error);
int order_turn_begin(struct tutti_comm *comm, uint32_t site, int64_t timeout_ns);
int order_turn_end(struct tutti_comm *comm, uint32_t site);

uint64_t order_seed(uint64_t base, uint64_t rank);

#endif
