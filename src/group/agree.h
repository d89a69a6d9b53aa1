/* Job: all living ranks of a comm, broken or not, come to one decision.
 * Owns: this rank's votes and its list; with all members, by CAS, the slot's decisions.
 * Never: the comm's operations: no number, line or verdict of theirs is used, so an agreement
 *        neither stands behind them nor breaks them.
 *
 * Each rank counts its agreements on a comm: its k-th meets the k-th of the others. Every decision
 * is one CAS on one word.
 *
 *   vote      store what I want, then the number k (release): my vote is cast, and stays as it is
 *             until I cast k + 2
 *   look      load the decision word of k. It is k's -> adopt it. It is a later one's -> I am
 *             late, see below. Then, in this order: news, alive words, quit bits, votes. Somebody
 *             voted k for another kind of thing -> MIXED. Everybody has voted or is gone -> the sum
 *             of all votes that were cast, by dead ranks too. I was interrupted -> STOPPED. My
 *             deadline has passed -> LATE. Else sleep on the vote of the first who is missing, the
 *             decision, the news, the alive words.
 *   propose   CAS the decision word from what was loaded first to the proposal. Won: wake all,
 *             adopt it. Lost: look again; it is k's.
 *
 * Same for all: the word becomes k's once, by one CAS, and whoever returns has read it. Two ranks
 * may see different votes (one of them before a death, or with its deadline over): only one of the
 * two sums is decided. Sums may be taken of a vote that its owner is just overwriting with k + 2;
 * then k was decided before, and the CAS from the older content fails.
 * Not stuck: whoever waits, waits for a living rank that has not voted; its vote, its death, its
 * leaving, a decision and the deadline each end that sleep. Nobody waits for the proposer.
 * Late: the word of k is used again for k + DECISIONS. A rank casts k' > k only after it has
 * adopted k, so a decision for which all had voted (sum) can only be followed, until the slowest
 * has adopted it, by decisions for which not all had (LATE, MIXED, STOPPED). So one such sum must
 * outlive its place: it is copied to `kept` before the place is used again. A rank that finds its k
 * neither in the word nor in `kept` has missed an agreement that failed for all, DECISIONS or more
 * ago: -ETIMEDOUT.
 *
 * E45 vote: a rank stores its stance, then the vote's number (release); a reader loads the number
 *     (acquire), then the stance.
 * E46 decide: the CAS (release) comes after what the decision speaks of: the list of survivors, the
 *    kept decision; a reader loads the decision (acquire), then those. */
#ifndef TUTTI_GROUP_AGREE_H
#define TUTTI_GROUP_AGREE_H

#include "group/comm.h"
#include "watch/fingerprint.h"

enum outcome {
    OUTCOME_NONE, OUTCOME_DONE, OUTCOME_AGAIN, OUTCOME_FAIL, OUTCOME_LATE,
    OUTCOME_MIXED, OUTCOME_STOPPED
};

struct decision { enum outcome outcome; uint32_t value; };

/* What an agreement is about, and what has been seen of it. */
struct agreement {
    struct tutti_comm *comm;
    enum kind kind;
    uint32_t site, value;             /* this rank's vote */
    /* what to propose when all have voted or are gone: DONE, AGAIN, FAIL. May be called again */
    struct decision (*sum)(const struct agreement *a);
    const void *about;                /* for sum */
    uint64_t number;                  /* k; set by agree_reach */
    /* the comm's watch; beside work under way `view`, a copy with scratch of its own */
    struct watch *watch, view;
};

/* For sum: has p voted? Is it gone? What did it say? */
bool agree_voted(const struct agreement *a, uint32_t p);
bool agree_gone(const struct agreement *a, uint32_t p);
uint32_t agree_value(const struct agreement *a, uint32_t p);

/* 0: *decided is DONE, AGAIN or FAIL, the same on all that come to this agreement. -ETIMEDOUT,
   -EPROTO on all; -EINTR here and -ECANCELED on the others: the report is written. The journal is
   the caller's. */
int agree_reach(struct agreement *a, struct decision *decided);

/* Has an agreement on this comm come to a result that all had voted for? */
bool agree_was_reached(const struct slot *slot);

/* This rank's table and call after a failure, for the reports. */
void agree_report(struct agreement *a, struct text *t);

/* tutti_comm_agree and tutti_comm_shrink, without the checks of arguments. */
int comm_agree(struct tutti_comm *comm, uint32_t site, int *flag);
int comm_shrink(struct tutti_comm *old, uint32_t site, struct tutti_comm **comm);

#endif
