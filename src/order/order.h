/* Job: once, first and turn: who goes first, and who next.
 * Owns: the keys' states with all ranks of the comm; member.turns of this rank; seat.waits_key
 *       of this rank.
 * Never: a barrier: a rank that does not call any of these holds up nobody.
 *
 * A key has two words: its state (version | runner | running), and the rounds done. A rank's n-th
 * call of a key asks for round n; it loads the state, then the rounds:
 *     rounds >= n              -> it is done, go on
 *     nobody runs              -> CAS: I run
 *     the runner is gone       -> CAS: I take over
 *     else                     -> sleep on the word, the runner's alive word and the comm's news
 * The end: rounds = n, unless it failed; then, by CAS, nobody runs. A runner that dies between the
 * two has done its round, which who takes over finds. Rounds are done in order, because a rank asks
 * for n only after n - 1 is done.
 *
 * E14 key: whoever adds a key writes its text, then owner and ready (release), under join.lock; a
 *     finder loads ready (acquire), then the text.
 * E15 key state: the runner's work is done, then the rounds, then the state (release); who loads
 *     rounds >= n (acquire) may use it.
 * E19 turns: a rank's turn is over, then turns (release); the next loads it (acquire) and
 * begins. That a runner and those who wait for its key wait for each other, watch/cycle finds,
 * as of all waits. */
#ifndef TUTTI_ORDER_ORDER_H
#define TUTTI_ORDER_ORDER_H

#include "group/comm.h"

/* the private books: this rank's counts of calls. 0 or -ENOMEM */
int  order_open(struct world *world);
/* before the comm is freed here: its keys are not run by this rank any more */
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
