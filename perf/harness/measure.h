/* Job: contenders against each other on the same CPUs: short turns, A B C C B A, round after
 *      round, in one run.
 * Owns: the jobs of one number of ranks.
 * Never: prints figures. */
#ifndef PERF_MEASURE_H
#define PERF_MEASURE_H

#include "harness/job.h"

enum { CONTENDERS_MAX = 64, SETTINGS_MAX = 16, REASON_BYTES = 160 };

struct team {
    int ranks, count, settings;
    bool crowded;
    const struct contender *contenders;
    struct setting setting[SETTINGS_MAX];
    struct job *jobs[SETTINGS_MAX];      /* NULL: it could not be started */
    char why[SETTINGS_MAX][REASON_BYTES];
    char about[SETTINGS_MAX][REASON_BYTES];     /* of a peer that stands: version and settings */
};

struct measured {
    /* this contender took part, to the end, and its results are right */
    bool in;
    /* why it did not; "" where it was not asked to, or lacks the operation */
    char why[REASON_BYTES];
    bool lacks;                            /* its system has no such operation */
    bool skip;                             /* by the caller: it is not asked */
    uint64_t times;                        /* operations in a batch */
    double rough;                          /* ns of one operation, before the first round */
    struct series rounds;                  /* per round: the median; what ratios are made of */
    /* every operation measured alone: what distributions are made of */
    struct series single;
};

/* contenders ends with a name of NULL. shared_bytes: memory shared by each job; pool_bytes: of
   each rank's send and receive buffers. without: keys of peers to leave out, separated by commas,
   "all", or NULL. */
struct team_plan {
    int ranks;
    const struct contender *contenders;
    const struct system *system;
    size_t shared_bytes, pool_bytes;
    const char *without;
    double done;                           /* of the progress bar */
};
void team_open(struct team *team, const struct team_plan *plan);
void team_close(struct team *team);
struct job *team_job(const struct team *team, int contender);
const char *team_about(const struct team *team, int contender);

/* seconds: of the rounds; some rounds are played in any case. Of a program with a limit they are
   all the time there is, from the call on: what an earlier call has found is not asked again,
   warming up takes no more than its part, and one round is enough. */
struct effort {
    double seconds;
    bool quick, hot;
    size_t bytes;
    double done, share;                    /* of the progress bar */
    enum operation_id op;
    bool work;
    int passes;                            /* it is one of so many calls for the same results */
};

/* results[team->count], zero or from an earlier call, which is added to. Contenders that take part
   are first checked for being right: one operation on known numbers, or, for a barrier, that nobody
   is through before the last has come. */
void measure(struct team *team, const struct effort *effort, struct measured *results);
/* The two halves of it, for who has rounds of its own. Contenders are checked and warmed up; then a
   turn of one of them: the median ns of an operation, 0 where it is not in. */
void measure_ready(struct team *team, const struct effort *effort, struct measured *results);
double measure_turn(struct team *team, const struct effort *effort, int contender,
                    struct measured *result);
void measured_free(struct measured *results, int count);

/* Runs one task of one contender; false: it does not take part (any more), and result->why
 * says why. */
bool measure_task(struct team *team, int contender, const struct task *task, struct series *figures,
                  struct series *returns, struct measured *result);

#endif
