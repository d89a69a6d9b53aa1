/* Job: carry an operation to its end: advance, wait, look, until it succeeded or a verdict
 *      says otherwise.
 * Owns: the waiting half of struct op; its own entries in sleepers words.
 * Never: what the operation computes. */
#ifndef TUTTI_WATCH_DRIVE_H
#define TUTTI_WATCH_DRIVE_H

#include "watch/watch.h"

/* To the end, in this thread. 0 or the failure. The report is the caller's to make (rollcall.h). */
int drive_to_end(struct op *op);

/* The same in pieces, for those who wait for several operations at once (the progress thread):
   drive_step advances as far as it goes: DONE, WAITING or negative. drive_look makes one look: 1 go
   on with drive_step, 0 sleep, negative failed. drive_gather declares a sleeper and appends the
   words to sleep on; drive_retire takes that back and passes deaths on (E9): it needs no op, which
   another thread may have finished meanwhile. */
struct drive_sleep { shared32 *sleepers; const struct futex_word *words; int n; };

int  drive_step(struct op *op);
int  drive_look(struct op *op, uint64_t now);
int  drive_gather(struct op *op, struct futex_word *words, int room, struct drive_sleep *sleep);
void drive_retire(const struct wait_ways *ways, const struct drive_sleep *sleep);
/* the deadline counts from now; without it, from the first look */
void drive_started(struct op *op, uint64_t now);
/* Since then, ns, without what is excused. A deadline is judged at `now`, the time up to which the
 * caller has excused stops: a stop after it cannot be told from a long wait. */
uint64_t drive_waited(const struct op *op, uint64_t now);
/* before a long slice: asks the system for deaths without a mark; thoroughly, unless a peer that
 * waits in the same operation has just done so: it proposes the verdict for all */
void drive_probe(struct op *op);
/* how long the next sleep may be, ns, by op->slices; a poll's is 50 us */
uint64_t drive_slice(struct op *op);
/* a device is waited for: worth calling advance again at once? *began: 0 at first */
bool     drive_poll_spins(const struct watch *w, uint64_t *began);
/* No sleep before a deadline is longer than an eighth of it: so a waiter that was stopped for
   longer than its whole deadline finds that in the slice, which then counts once, and does not
   mistake it for its peers' delay. */
uint64_t drive_slice_most(int64_t timeout_ns);
/* What a sleep took too long and no deadline shall count: more than four times its length, by more
 * than a moment. 0: it was as it should be. */
uint64_t drive_excess(uint64_t slice, uint64_t took);
/* the beginning of a wait, moved by that, at most to now */
uint64_t drive_later(uint64_t began, uint64_t now, uint64_t excess);
/* the interrupt function, until it has said stop; and what there is to do meanwhile */
bool drive_stop_asked(struct watch *w);
/* accounts for it: a slice that took over four times its length counts once */
void drive_slept(struct op *op, uint64_t slice, uint64_t took);

#endif
