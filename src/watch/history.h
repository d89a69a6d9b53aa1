/* Job: read the journals of a comm, in an arena or in a copy of one: what each rank did last, in
 *      order, on one clock; when the last rank came, and which one that was.
 * Owns: what it returns; nothing of the arena.
 * Never: hands out a record that may be torn. Every number is bounded, or said to be any number: it
 *        comes from memory that each process of the job can write over. */
#ifndef TUTTI_WATCH_HISTORY_H
#define TUTTI_WATCH_HISTORY_H

#include "arena/arena.h"
#include "watch/fingerprint.h"

/* Times of two ranks that are closer than this are the same time: the ticks of the CPUs of one
 * machine agree to some tens of ns, and so do the two points by which they become ns. */
enum { HISTORY_UNCERTAIN_NS = 100 };

/* One operation of one rank. Times: ns of the monotonic clock of whoever reads, at most `now`. */
struct history_op {
    bool became;                      /* false: the call became no operation (refused) */
    bool exact;                       /* its end was read from a clock, not estimated */
    int result;                       /* -errno; -ENODATA: another error; 0 while under way */
    int last;                         /* rank of the comm that came last; -1: not known, or none */
    uint64_t number;                  /* of the comm's collectives, from 1; 0: it is none */
    uint64_t descriptor, count;       /* of a kind below KIND_COUNT, never KIND_NONE */
    uint64_t began_ns, ended_ns;      /* ended 0: under way */
    uint64_t arrived_ns;              /* 0: it has not arrived (yet), or it is no collective */
    uint64_t last_ns;                 /* the arrival of the last rank; 0: not known */
    uint32_t site;                    /* for arena_site_text; any number */
    uint32_t algorithm;               /* for algorithm_name; any number; 0: none */
    /* of a message: peer + 1, tag + 1; 0: any, or any number */
    uint32_t about, tag;
};

/* op[0 … n): the oldest first. begun: since the comm began; the others are lost. */
struct history_rank { uint32_t rank, n; uint64_t begun; struct history_op *op; };

/* rank[p].rank: in the world; RANK_NOBODY: damage. at[n]: all operations. */
struct history {
    uint32_t slot, size, n;
    uint64_t birth, parent;           /* of the comm; parent 0: it is the world */
    struct history_rank *rank;        /* [size] */
    struct history_op *at;
};

/* The comm in slot `index`. now: taken when the arena was copied, or now. 0; -ENOENT: no comm is
   there; -ENOMEM. */
int  history_read(struct history *h, const struct arena *arena, uint32_t index,
                  struct clock_point now);
void history_drop(struct history *h);

/* That rank's operation of this number; NULL: it is not there. */
const struct history_op *history_find(const struct history_rank *rank, uint64_t number);

#endif
