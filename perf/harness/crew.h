/* Job: ranks that stand ready, measure what they are told to, and sleep in between.
 * Owns: the memory shared by a crew and the program that commands it; the reference barriers in it.
 * Never: statistics.
 *
 * A crew is one tutti_spawn, in a process of its own, so that several crews with different settings can take turns on the same CPUs
 * within one run. A contender is a piece of code that a rank of a crew runs `times` times. */
#ifndef PERF_CREW_H
#define PERF_CREW_H

#include "harness/bare.h"
#include "harness/series.h"
#include "harness/stamp.h"

#include <sys/types.h>
#include <tutti.h>

/* What a contender's code sees of its rank. */
struct rank {
    int me, size;
    bool crowded;                          /* more ranks than CPUs: the crew is not pinned, references yield */
    tutti_comm *comm;
    struct bare *bare;
    uint64_t nth[4];                       /* how many barriers of each kind, see struct bare */
    char *shared;                          /* bytes of all ranks, contender's own use */
    size_t bytes;                          /* of the message, where there is one */
    bool hot;
    char *send, *recv;                     /* of this sample */
    char *sends, *recvs;                   /* pools, private to the rank */
    size_t room;                           /* bytes of a pool */
    uint64_t turn;
};

struct contender {
    const char *name;                      /* up to 24 columns */
    const char *help;                      /* what it is, for the page */
    const char *rules;                     /* TUTTI_ALGORITHM of its crew; NULL: as chosen */
    int ranks;                             /* only with so many; 0: any */
    bool uncrowded;                        /* not with more ranks than CPUs */
    size_t least, most;                    /* sizes it takes; most 0: any */
    int (*run)(struct rank *r, uint64_t times);        /* 0 or a negative errno */
    void (*prepare)(struct rank *r);       /* before each sample, not measured; may be NULL */
};

enum form {
    FORM_BATCH,     /* `times` operations back to back: the cost of one without the clock's */
    FORM_SINGLE,    /* one operation; ranks start together, at a time agreed on; when crowded, after a barrier that yields */
    FORM_CHAIN,     /* operations back to back, a stamp after each */
    FORM_LATE,      /* one rank comes 100 ms late; CPU time of the others, and how long after it they are back */
    FORM_END
};

struct sample { uint64_t begin, end; };    /* stamps; begin 0: spoiled */

struct task { enum form form; int contender, samples, warm; uint64_t times; size_t bytes; bool hot; };

struct crew;

enum { SAMPLES_MAX = 2048, LATE_MS = 100 };

/* Forks a crew and waits until it stands. shared_bytes: for rank.shared. Ends the program with a sentence if it cannot. */
struct crew *crew_start(int ranks, const char *rules, const struct contender *contenders, size_t shared_bytes, size_t pool_bytes);
void crew_end(struct crew *crew);

/* Runs the task on all ranks. figures gets, for each good sample, the maximum over ranks: ns for one operation. FORM_LATE: CPU ns of
   the rank that burnt most; then `returns` gets the ns from the late rank's arrival to the last return. */
void crew_run(struct crew *crew, const struct task *task, struct series *figures, struct series *returns);

#endif
