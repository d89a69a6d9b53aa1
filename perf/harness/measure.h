/* Job: contenders against each other on the same CPUs: short turns, A B C C B A, round after round, in one run.
 * Owns: the crews of one number of ranks.
 * Never: prints figures. */
#ifndef PERF_MEASURE_H
#define PERF_MEASURE_H

#include "harness/crew.h"

enum { CONTENDERS_MAX = 16, SETTINGS_MAX = 6 };

struct team {
    int ranks, count, settings;
    bool crowded;
    const struct contender *contenders;
    const char *rules[SETTINGS_MAX];
    struct crew *crews[SETTINGS_MAX];
};

struct measured {
    bool in;                               /* this contender took part */
    uint64_t times;                        /* operations in a batch */
    struct series rounds;                  /* per round: the median; what ratios are made of */
    struct series single;                  /* every operation measured alone: what distributions are made of */
};

/* contenders ends with a name of NULL. shared_bytes: memory shared by each crew; pool_bytes: of each rank's send and receive buffers. */
void team_open(struct team *team, int ranks, const struct contender *contenders, size_t shared_bytes, size_t pool_bytes);
void team_close(struct team *team);

struct effort { double seconds; bool quick, hot; size_t bytes; double done, share; };    /* done, share: of the progress bar */

/* results[team->count], zero or from an earlier call, which is added to. */
void measure(struct team *team, const struct effort *effort, struct measured *results);
void measured_free(struct measured *results, int count);

#endif
