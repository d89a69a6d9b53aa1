/* Job: wait until all ranks sit, or until one of them cannot any more; all come to the same end.
 * Owns: join.joined, join.state, join.failed_rank and join.cpus, together with the other joiners.
 * Never: how a rank came to the arena.
 *
 *   the last to sit         joined becomes size: writes cpus, CAS state GATHERING ->
 *                           COMPLETE, wakes all
 *   who sees a rank gone    CAS failed_rank 0 -> rank + 1, CAS state GATHERING -> FAILED, wakes all
 *   who is past its time    CAS failed_rank 0 -> ASSEMBLE_LATE, the same
 *
 * state leaves GATHERING once, and everybody returns what it then says; so nobody joins a world
 * that another has given up. Whose own time is not over then gathers elsewhere (meet.h). */
#ifndef TUTTI_GROUP_ASSEMBLE_H
#define TUTTI_GROUP_ASSEMBLE_H

#include "group/refused.h"

enum { ASSEMBLE_GOING = 0, ASSEMBLE_DONE = 1 };
#define ASSEMBLE_LATE UINT32_MAX

struct assembly {
    const struct arena *arena;
    uint32_t rank;
    int timeout_ms;                   /* for the text; < 0: none */
    uint64_t end_ns;                  /* UINT64_MAX: none */
    uint64_t slice_ns;                /* of the next sleep: grows */
    uint32_t probed;                  /* the seat to ask the system about next */
    /* ranks that sat in a gathering of this wait that was given up */
    uint64_t came[RANKS_MAX / 64];
    struct refused refused;           /* as far as these said */
};

/* This rank sits: counts it, and completes the world if it is the last. */
void assemble_seated(struct assembly *g);

/* ASSEMBLE_GOING, ASSEMBLE_DONE, -EOWNERDEAD, -ETIMEDOUT. Looks at state, seats and the clock;
 * never sleeps. */
int assemble_look(struct assembly *g);

/* One look and, while it says GOING, one sleep of a slice at most. The same results. */
int assemble_wait(struct assembly *g);

/* The next slice, 1 ms growing to 50, not beyond the deadline. For those who sleep by
 * other means. */
uint64_t assemble_slice(struct assembly *g);

/* `rank` is gone: fails the gathering unless it has ended. As assemble_look */
int assemble_fail(struct assembly *g, uint32_t rank);
/* how it has ended, as assemble_look; no look at anything else */
int assemble_end(const struct assembly *g);

/* Another rank's time was over, and ours is not: this gathering is left for another one, and who
 * sat here is remembered. */
void assemble_again(struct assembly *g);
void assemble_explain(const struct assembly *g, int error, struct text *why);

#endif
