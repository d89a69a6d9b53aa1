/* Job: wait until all ranks sit, or until one of them cannot any more; all come to the same end.
 * Owns: join.joined, join.state, join.failed_rank and join.cpus, together with the other joiners.
 * Never: how a rank came to the arena.
 *
 *   the last to sit         joined becomes size: writes cpus, CAS state GATHERING -> COMPLETE, wakes all
 *   who sees a rank gone    CAS failed_rank 0 -> rank + 1, CAS state GATHERING -> FAILED, wakes all
 *   who is past its time    CAS failed_rank 0 -> GATHER_LATE, the same
 *
 * state leaves GATHERING once, and everybody returns what it then says; so nobody joins a world that another has given up. Whose own
 * time is not over then gathers elsewhere (meet.h). */
#ifndef TUTTI_GROUP_GATHER_H
#define TUTTI_GROUP_GATHER_H

#include "group/refused.h"

enum { GATHER_GOING = 0, GATHER_DONE = 1 };
#define GATHER_LATE UINT32_MAX

struct gather {
    const struct arena *arena;
    uint32_t rank;
    int timeout_ms;                   /* for the text; < 0: none */
    uint64_t end_ns;                  /* UINT64_MAX: none */
    uint64_t slice_ns;                /* of the next sleep: grows */
    uint32_t probed;                  /* the seat to ask the system about next */
    uint64_t came[RANKS_MAX / 64];    /* ranks that sat in a gathering of this wait that was given up */
    struct refused refused;           /* as far as these said */
};

/* This rank sits: counts it, and completes the world if it is the last. */
void gather_seated(struct gather *g);

/* GATHER_GOING, GATHER_DONE, -EOWNERDEAD, -ETIMEDOUT. Looks at state, seats and the clock; never sleeps. */
int gather_look(struct gather *g);

/* One look and, while it says GOING, one sleep of a slice at most. The same results. */
int gather_wait(struct gather *g);

/* The next slice, 1 ms growing to 50, not beyond the deadline. For those who sleep by other means. */
uint64_t gather_slice(struct gather *g);

int gather_fail(struct gather *g, uint32_t rank);    /* `rank` is gone: fails the gathering unless it has ended. As gather_look */
int gather_end(const struct gather *g);              /* how it has ended, as gather_look; no look at anything else */

/* Another rank's time was over, and ours is not: this gathering is left for another one, and who sat here is remembered. */
void gather_again(struct gather *g);
void gather_explain(const struct gather *g, int error, struct text *why);

#endif
