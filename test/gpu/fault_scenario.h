/* Job: a life of a rank with device buffers, in steps, in which something is to go wrong at one
 *      rank; and what the ranks found.
 * Owns: what they tell each other and the test, in the page of support/ranks.
 * Never: a judgement (cuda_error_every_test.c, kill_random_test.c), CUDA in the test's
 *        own process. */
#ifndef TUTTI_TEST_GPU_FAULT_SCENARIO_H
#define TUTTI_TEST_GPU_FAULT_SCENARIO_H

#include "host_compare.h"

enum {
    /* steps on the world: collectives, work, memory of ours, a comm of its own */
    SCENARIO_OPS = 7,
    SCENARIO_SHRINK = SCENARIO_OPS,                  /* then, if one failed, shrink, */
    SCENARIO_DEVICE,                                 /* device buffers on that comm, */
    SCENARIO_AGAIN,                                  /* shrink, if they failed, */
    SCENARIO_HOST,                                   /* host buffers, */
    SCENARIO_END,                                    /* finalize */
    SCENARIO_STEPS,
    SCENARIO_NONE = 1,                               /* a step that was not come to */
    SCENARIO_RANKS = 8,
};

#define SCENARIO_COUNT_(symbol, parameters) SCENARIO_AT_##symbol,
enum { CUDA_ALL_SYMBOLS(SCENARIO_COUNT_) SCENARIO_SYMBOLS };
extern const char *const scenario_symbols[SCENARIO_SYMBOLS];

struct scenario_told {
    /* 0, -errno, -EBADMSG: what came is wrong, SCENARIO_NONE */
    int result[SCENARIO_RANKS][SCENARIO_STEPS];
    /* of the library, at the faulty rank, if it comes to its end */
    uint64_t calls[SCENARIO_SYMBOLS];
    char words[SCENARIO_RANKS][600];                 /* of the first failure */
};
struct scenario_told *scenario_told(void);

/* What is to go wrong: at this rank the library's nth call of the symbol gives this code (as in
 * FAKE_CUDA_FAIL). Set before ranks_run. */
extern struct scenario_fault {
    const char *symbol, *code;
    uint64_t nth;
    int rank;
    bool leaves_things;
} scenario_fault;

/* It has come to no step: before it can be killed. */
void scenario_clear(int rank);
/* A body for ranks_run. A rank that hangs is killed by its alarm. */
int scenario_run(tutti_comm *world, int rank);
/* The same over and over until a step fails, for one that is killed at some time. */
int scenario_runs(tutti_comm *world, int rank);

/* Where the ranks in `who` (a bit each) failed first, -1: nowhere, or *bad says what does not
 * belong together, and *at where. */
int scenario_failed(int ranks, unsigned who, int from, int to, const char **bad, int *at);
void scenario_print(int ranks);

#endif
