/* Job: what a rank does when the crew is told to measure: align, stamp, run, stamp.
 * Owns: this rank's samples in the stage.
 * Never: waits for a command, computes a figure. */
#ifndef PERF_PERFORM_H
#define PERF_PERFORM_H

#include "harness/crew.h"

/* What a crew and its commander share. Pointers are the same in all of them: mapped before the fork. */
struct stage {
    _Alignas(128) shared32 go;             /* +1 by the commander, after the task; ranks sleep on it */
    _Alignas(128) shared32 ready;          /* +1 by each rank that is done; the commander sleeps on it */
    _Alignas(128) struct bare_line gate_count, gate_sense;     /* the gate of FORM_SINGLE */
    struct bare_line start[2];             /* by rank 0, by parity of the sample: when to start */
    struct task task;                      /* by the commander, before go */
    int size;                              /* from here on fixed before the fork */
    bool crowded;
    const struct contender *contenders;
    char *shared;
    size_t pool;
    struct bare bare;
    struct sample samples[PERF_RANKS_MAX][SAMPLES_MAX];        /* each rank its row */
    uint64_t burnt[PERF_RANKS_MAX][SAMPLES_MAX];               /* FORM_LATE: CPU ns; UINT64_MAX: this rank was the late one */
};

int perform(struct stage *s, struct rank *r);      /* 0 or the negative errno of the operation */

#endif
