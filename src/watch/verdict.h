/* Job: all or none. Decides, together with every other rank that looks, whether an operation
 *      succeeded or failed, and why.
 * Owns: slot.verdict, with all members, by CAS.
 * Never: sleeps, algorithms, reports.
 *
 * The protocol. C(k): every rank has arrived at k with the same descriptor, the committers'
 * last-phase words have reached their value, and, if any of these arrivals says device memory, the
 * result is in place at every rank (E70: a device can fail after the last word). It is monotone and
 * the same for all who look. V is the verdict word.
 *
 *   complete  local completion implies C(k). Load V: 0 or of a later operation -> success. Proposal
 *             for k -> withdraw it by CAS, success (anybody who sees C(k) withdraws, nobody waits
 *             for the proposer). Confirmed for k -> fail.
 *   look      C(k)? -> complete, and only the leave of those who still read our buffers may be left
 *             to wait for. V confirmed for k -> fail. V proposes k -> decide. V proposes an earlier
 *             operation -> clear it. Then, in this order: news, alive words, quit bits of all (our
 *             own too), flags. Somebody aborted, or is gone and has not done its part (or has, but
 *             what it gave lay with it: claim.whole), or called something else, or our deadline has
 *             passed -> give up.
 *   give up   propose by CAS from 0; if somebody else was first, his reason stands. Then decide.
 *   decide    fence; C(k) once more -> complete. Else confirm by CAS and wake all; if that CAS is
 *             lost, look again from the start.
 *
 * Edges (both ends carry the name in the code):
 * E1 arrive: a rank stores payload and descriptor, then seq (release); the reader loads seq
 *    (acquire), then those. Without it: last round's data is folded.
 * E2 wake: a writer stores its word, full fence, then looks at its sleepers. Pairs with E3 and E4.
 *    A rank that leaves may do the last two in its next call (engine/owed).
 * E3 sleep: a sleeper adds itself to the sleepers, full fence, then looks at the word again (in the
 *     kernel). Without it: lost wake.
 * E4 decide: a decider has proposed or read a proposal, full fence, then looks at all arrivals.
 *    Pairs with E2 and E6: either the decider sees the arrival, or the arriver sees the proposal.
 * E5 alive: the alive word is loaded before the flags of its owner: a rank that is gone and behind
 *     stays behind. Whoever finds a death that the kernel has not marked sets the mark (CAS,
 *     release).
 * E6 complete: the flags are loaded (acquire), then V. Needs multi-copy atomicity: x86,
 *     Armv8, RISC-V.
 * E7 confirm: whatever the report needs (abort text, quit bits) is written before the quit bit, the
 *     news and the confirmation (release).
 * E8 withdraw: the CAS back to 0 releases what the withdrawer saw.
 * E9 pass on: a sleeper woken by a death wakes all others on that alive word before it looks at
 *     anything else. */
#ifndef TUTTI_WATCH_VERDICT_H
#define TUTTI_WATCH_VERDICT_H

#include "watch/watch.h"

enum why {
    WHY_NONE, WHY_DIED, WHY_LEFT, WHY_DEADLINE, WHY_MISMATCH, WHY_ABORT, WHY_FREED, WHY_DEADLOCK,
    WHY_INTERRUPT, WHY_DEVICE, WHY_BEYOND
};

#define VERDICT_OP_MASK UINT32_C(0x3fffffff)
enum { VERDICT_PROPOSED = 1, VERDICT_CONFIRMED = 2 };

static inline uint64_t verdict_make(uint64_t seq, enum why why, uint32_t by, uint32_t who)
{
    uint32_t high = (uint32_t)why << 28 | by << 14 | who;
    return (uint64_t)high << 32 | (uint64_t)VERDICT_PROPOSED << 30 | (seq & VERDICT_OP_MASK);
}
static inline unsigned verdict_state(uint64_t v) { return (unsigned)(v >> 30 & 3); }
static inline enum why verdict_why(uint64_t v) { return (enum why)(v >> 60); }
static inline uint32_t verdict_by(uint64_t v) { return (uint32_t)(v >> 46) & 0x3fff; }
static inline uint32_t verdict_who(uint64_t v) { return (uint32_t)(v >> 32) & 0x3fff; }
/* False: verdict_who() is no culprit: it differs from the rank that looked, or is in a circle. */
static inline bool verdict_names(uint64_t v)
{
    return verdict_why(v) != WHY_MISMATCH && verdict_why(v) != WHY_DEADLOCK;
}
static inline uint64_t verdict_confirmed(uint64_t v) { return v + (UINT64_C(1) << 30); }
/* The verdict's operation minus seq, by signed 30-bit difference. */
static inline int32_t verdict_after(uint64_t v, uint64_t seq)
{
    return (int32_t)(((uint32_t)v - (uint32_t)seq) << 2) >> 2;
}

bool claim_holds(const struct watch *w, const struct claim *c);                     /* C(k) */

/* The end of an operation whose algorithm is done. 0 success, or the failure's negative errno.
 * Inline: one load on the fast path. */
int verdict_contested(struct watch *w, const struct claim *c);
static inline bool verdict_none(const struct watch *w)
{
    return load_acquire64(&w->slot->verdict) == 0;                   /* E6 acquire */
}

static inline int verdict_complete(struct watch *w, const struct claim *c)
{
    return verdict_none(w) ? 0 : verdict_contested(w, c);
}

/* One look while waiting. 1: go on (the word waited for has come, or C(k) holds). 0: nothing yet,
   sleep. Negative: failed. late: our deadline has passed. */
int verdict_look(struct watch *w, const struct claim *c, const struct wait *wait, bool late);

int verdict_error(uint64_t v);                                          /* the errno of a verdict */
/* Whom a confirmed verdict calls dead is dead to this rank, too, even if it left no mark and only
 * the proposer asked the system. */
void verdict_note(struct watch *w, uint64_t v);
/* This rank has been told the cause otherwise: is the comm broken, then here, too. */
void verdict_met(struct watch *w);

/* Abort, free, leave, a device's failure, a failure met alone: sets a quit bit of this rank on this
   comm, in the order flag, bit, news, wake. An abort also fails the operation that this rank is in,
   where a peer has not arrived at it. Safe in a signal handler. After FREED nothing of the comm may
   be touched. */
void verdict_quit(struct watch *w, uint32_t bit);

#endif
