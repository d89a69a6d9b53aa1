/* Job: ranks that stand ready, measure what they are told to, and sleep in between.
 * Owns: the memory shared by a job and the program that commands it; the reference barriers in it.
 * Never: statistics.
 *
 * A job is of tutti (one tutti_spawn in a process of its own) or of another system (its launcher
 * and its rank program, see foreign.h), so that several of them can take turns on the same CPUs
 * within one run. A contender is a piece of code that a rank of a job runs `times` times. */
#ifndef PERF_JOB_H
#define PERF_JOB_H

#include "harness/bare.h"
#include "harness/operation.h"
#include "harness/series.h"
#include "harness/stamp.h"

#include <sys/types.h>
#include <tutti.h>

/* What a job is made of. Contenders with equal settings share one. */
struct setting {
    const char *rules;                     /* TUTTI_ALGORITHM; NULL: as chosen */
    const char *system;                    /* the key of a peer, as "openmpi"; NULL: tutti */
    bool arena;                            /* pools by tutti_alloc */
};

struct contender {
    const char *name;                      /* up to 24 columns */
    const char *help;                      /* what it is, for the page */
    const struct setting *setting;         /* NULL: tutti as it comes */
    int ranks;                             /* only with so many; 0: any */
    bool uncrowded;                        /* not with more ranks than CPUs */
    size_t least, most;                    /* sizes it takes; most 0: any */
    /* 0 or a negative errno; NULL where setting->system is not */
    int (*run)(struct rank *r, uint64_t times);
    void (*prepare)(struct rank *r);       /* before each sample, not measured; may be NULL */
    enum operation_id only;                          /* of all operations this one; OP_NONE: any */
};

enum form {
    FORM_BATCH,     /* `times` operations back to back: the cost of one without the clock's */
    /* one operation; ranks start together, at a time agreed on; when crowded, after a barrier
     * that yields */
    FORM_SINGLE,
    FORM_CHAIN,     /* operations back to back, a stamp after each */
    /* the same without a warm-up, and with the first of them, from a common start */
    FORM_FIRST,
    /* one rank comes late_ms late; CPU time of the others, and how long after it they are back */
    FORM_LATE,
    FORM_CHECK,     /* one operation on known numbers; figures are how many elements are wrong */
    FORM_END
};

/* FORM_LATE, who comes late: each rank in turn | rank 0 | each in turn, with the end of what it has
 * begun before the others; then `run` calls r->come */
enum late { LATE_TURNS, LATE_FIRST, LATE_HOLDS };

struct sample { uint64_t begin, end; };    /* stamps; begin 0: spoiled */

struct task {
    enum form form;
    int contender, samples, warm;
    uint64_t times;
    size_t bytes;
    bool hot;
    enum operation_id op;                            /* for contenders that can do several */
    bool work;
    int late_ms;
    enum late late;
};

struct job;

enum { SAMPLES_MAX = 2048, LATE_MS = 100 };

struct job_plan {
    int ranks;
    struct setting setting;
    const struct contender *contenders;    /* of tutti's jobs */
    const struct system *system;           /* the operations of tutti's jobs; may be NULL */
    size_t shared_bytes, pool_bytes;       /* rank.shared; each of a rank's two pools */
};

/* Starts a job and waits until it stands. tutti's own ends the program with a sentence if it
   cannot; of a peer it returns NULL and says in `why` what is in the way. */
struct job *job_start(const struct job_plan *plan, char *why, size_t room);
void job_end(struct job *job);
/* From the start of a peer's launcher to the last rank's end of its first barrier, ns; 0: it has
 * not said. */
double job_first(const struct job *job);
/* How long the start-up of the slowest rank took, ns; 0: not known. Of a peer its call of init
   alone; of tutti from before its ranks are forked, so rather more. */
double job_up(const struct job *job);
const char *job_version(const struct job *job);         /* of a peer */
bool job_can(const struct job *job, enum operation_id op, bool work);

/* Runs the task on all ranks. figures gets, for each good sample, the maximum over ranks: ns for
   one operation. FORM_LATE: CPU ns of the rank that burnt most; then `returns` gets the ns from the
   late rank's arrival to the last return. false: this job of a peer has ended or does not answer,
   `job_why` tells more, and is good for job_end only. */
bool job_run(struct job *job, const struct task *task, struct series *figures,
             struct series *returns);
/* The least time from the late rank's arrival to anybody's return, in the last FORM_LATE: below 0,
 * a barrier let somebody through. */
double job_soonest(const struct job *job, const struct task *task);
const char *job_why(const struct job *job);

#endif
