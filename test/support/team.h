/* Job: make the ranks of one job for tests that stop, kill and question them: a process that starts
 *      the ranks, and a page that all share.
 * Owns: the job's processes; ends and reaps them by their numbers.
 * Never: waits without a bound, or by time alone: it waits on a word for a step, on a process for
 *        an end. */
#ifndef TUTTI_TEST_SUPPORT_TEAM_H
#define TUTTI_TEST_SUPPORT_TEAM_H

#include "base/atomic.h"

#include <sys/types.h>
#include <tutti.h>

enum { TEAM_MOST = 16, TEAM_PATIENCE_S = 60, TEAM_TEXT = 8192, TEAM_ERRORS = 16 };

/* What a rank reports to the test. The running test uses all but pid, step and told as it likes. */
struct team_rank {
    shared32 pid;                     /* 0 until its body runs */
    shared32 step;                    /* raised by team_say; only grows */
    shared32 told;                    /* raised by team_tell; this rank waits for it */
    int error[TEAM_ERRORS];
    int failed_count, failed[TEAM_MOST];
    uint64_t operation;               /* how many operations succeeded */
    uint64_t returned_ns;             /* when the failed one returned */
    uint64_t wrong;                   /* results that were not right */
    uint64_t number[8];
    char report[TEAM_TEXT];
};

struct team {
    int size;
    pid_t job;                      /* the parent of the ranks; 0: reaped */
    int said;                       /* what tutti_spawn returned */
    int status[TEAM_MOST];          /* as waitpid gives it, when the job has ended */
    int stderr_fd;                  /* catches what the job writes to stderr; -1: not caught */
    shared32 all;                   /* for the test, as a count or a signal */
    uint64_t number[16];
    struct team_rank rank[TEAM_MOST];
};

typedef int team_body(tutti_comm *world, int rank, struct team *team);

/* quiet: stderr is caught (team_stderr). The ranks get the caller's environment of this moment. */
struct team *team_start(int size, team_body *body, bool quiet);
/* Like team_start, but without tutti_spawn: the ranks meet under a name. Each child's body gets
 * NULL as world, and calls tutti_init itself. */
struct team *team_start_named(int size, team_body *body, bool quiet);

/* Waits for the end of all ranks. 0. -1: patience ran out, and all were killed: they hang. */
int  team_end(struct team *team);
void team_free(struct team *team);                      /* after team_end */
/* Tells each rank `what`, its word to leave, and waits for the end of all. Asserts that none
 * hangs. */
void team_dismiss(struct team *team, uint32_t what);
/* Asserts the results that a rank has noted of two calls. */
void team_expect(const struct team *team, int rank, int first, int second);
const char *team_stderr(struct team *team);             /* after team_end; valid until team_free */

void team_say(struct team *team, int rank, uint32_t step);  /* by the rank: it has come to this */
/* waits until it has: 0; -1: it ended, or patience did */
int  team_await(struct team *team, int rank, uint32_t step);
void team_tell(struct team *team, int rank, uint32_t what);         /* called by the test */
/* called by the rank: waits until team_tell gives it `what`: 0, or -1 */
int  team_hear(struct team *team, int rank, uint32_t what);

pid_t team_pid(struct team *team, int rank);
/* waits until process_state of the rank is this, with a bound */
bool team_is(struct team *team, int rank, const char *state);

/* The rank's tutti_failed and tutti_explain, kept for the test. */
void team_note(struct team *team, int rank, tutti_comm *comm);

uint64_t team_random(uint64_t *state);                      /* splitmix64 */
/* TUTTI_TEST_SEED, or one of this moment; printed, so that a run can be repeated */
uint64_t team_seed(void);
void team_spin(uint64_t ns);                        /* spins for that long: finer than any sleep */
/* a number of repetitions: the variable's value, or by build */
int  team_many(const char *variable, int normal, int sanitized);
bool team_sanitized(void);

#endif
