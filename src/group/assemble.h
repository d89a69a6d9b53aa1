/* Job: wait until all ranks have a seat, or one cannot take it any more. All come to the same end.
 * Owns: join.joined, join.state, join.failed_rank and join.cpus, together with the other joiners.
 * Never: asks how a rank came to the arena.
 *
 *   last rank to sit        joined becomes size: makes the world's slot, writes cpus, CAS state
 *                           GATHERING -> COMPLETE, wakes all
 *   finder of a rank gone   CAS failed_rank 0 -> rank + 1, CAS state GATHERING -> FAILED, wakes all
 *   rank past its deadline  CAS failed_rank 0 -> ASSEMBLE_LATE, then the same
 *
 * state leaves GATHERING once, and all return what it then says: no rank joins a world that another
 * has given up. A rank with time left then looks for another meeting (meet.h). */
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
    uint64_t slice_ns;                /* of the host's next sleep: grows; else 0: until our turn */
    uint32_t turn;                    /* how many sat before this rank */
    uint32_t own;                     /* seats asked about besides; see probe_own */
    uint64_t came[RANKS_MAX / 64];    /* ranks that sat in earlier gatherings of this wait */
    struct refused refused;           /* what those gatherings noted */
};

/* Counts this rank, which has its seat; the last one completes the world. */
void assemble_seated(struct assembly *g);

/* Looks at state, seats and the clock; never sleeps. ASSEMBLE_GOING, ASSEMBLE_DONE, -EOWNERDEAD,
 * -ETIMEDOUT. */
int assemble_look(struct assembly *g);

/* For ranks that are started together: offers the CPU to others until all are there, for half a
 * millisecond at most, if each rank has one. A sleep and its wake would take 0.1 ms more. */
void assemble_expect(const struct assembly *g);

/* One look, and one slice of sleep at most if that says GOING. Returns as assemble_look. */
int assemble_wait(struct assembly *g);

/* The host's next slice, ns: 1 ms growing to 50 ms, not beyond the deadline. It sleeps in poll. */
uint64_t assemble_slice(struct assembly *g);

/* `rank` is gone: fails the gathering unless that has ended. Returns as assemble_look. */
int assemble_fail(struct assembly *g, uint32_t rank);
/* The end as state says it, without any other look. Returns as assemble_look. */
int assemble_end(const struct assembly *g);

/* Another rank's deadline has ended this gathering, ours has not passed: remembers which ranks sat
 * here and what was noted, for the next gathering. */
void assemble_again(struct assembly *g);
void assemble_explain(const struct assembly *g, int error, struct text *why);

#endif
