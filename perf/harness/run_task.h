/* Job: what a rank does when the job is told to measure: align, stamp, run, stamp.
 * Owns: this rank's samples in the stage.
 * Never: waits for a command, computes a figure. */
#ifndef PERF_RUN_TASK_H
#define PERF_RUN_TASK_H

#include "harness/job.h"

/* What a job and its commander share: a file without a name, mapped by each where there is room, so
 * there are no pointers in it. */
struct stage {
    _Alignas(128) shared32 go;        /* +1 by the commander, after the task; ranks sleep on it */
    _Alignas(128) shared32 ready;     /* +1 by each rank that is done; the commander sleeps on it */
    _Alignas(128) struct bare_line gate_count, gate_sense;     /* the gate of FORM_SINGLE */
    struct bare_line start[2];             /* by rank 0, by parity of the sample: when to start */
    struct task task;                      /* by the commander, before go */
    /* sizeof(struct stage): whoever has another header is refused; from here on fixed before
     * the start */
    size_t stage_bytes;
    size_t shared_at;                      /* where rank.shared begins */
    pid_t commander;
    int size;
    int cpu[PERF_RANKS_MAX];               /* of each rank; by turns if crowded */
    uint64_t mask[PERF_RANKS_MAX];         /* the CPUs of all ranks together, a bit for each */
    bool crowded;
    size_t pool;
    /* by a peer's ranks: the stamp after their first barrier, before they are ready */
    uint64_t first[PERF_RANKS_MAX];
    /* by each rank before it is ready: stamps that its start-up took; 0: nobody knows */
    uint64_t up[PERF_RANKS_MAX];
    char version[64];                      /* of the peer, by its rank 0 before it is ready */
    /* by rank 0 before it is ready: a bit for each operation; [1] as work */
    uint64_t can[2];
    struct bare bare;
    struct sample samples[PERF_RANKS_MAX][SAMPLES_MAX];        /* each rank its row */
    /* FORM_LATE: CPU ns; UINT64_MAX: this rank was the late one */
    uint64_t burnt[PERF_RANKS_MAX][SAMPLES_MAX];
};

/* 0 or the negative errno of the operation */
int run_task(struct stage *s, struct rank *r, const struct contender *contenders);

/* The life of a rank: contender `system` of the stage's task, over and over, until FORM_END.
 * member_serve is this with a peer's. */
int run_tasks(struct stage *s, struct rank *r, const struct contender *contenders);

#endif
