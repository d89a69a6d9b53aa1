/* Job: run one start of all ranks, from the arena to the last process.
 * Owns: the arena that it makes.
 * Never: decides to start again; reports. */
#ifndef TUTTI_LAUNCH_ATTEMPT_H
#define TUTTI_LAUNCH_ATTEMPT_H

#include "launch/black_box.h"
#include "launch/children.h"
#include "launch/job.h"
#include "launch/relay.h"
#include "launch/start.h"

/* What began the end. The first one counts, but NOT_STARTED replaces FAILED: the failed rank never
 * ran the program. */
enum attempt_ending {
    ENDING_NONE, ENDING_FAILED, ENDING_TIMED_OUT, ENDING_TOLD, ENDING_UNREAD, ENDING_NOT_STARTED
};

struct attempt {
    const struct job *job;
    struct signals *signals;
    struct relay *relay;
    const char *path;                    /* of the program */
    const char *rules;
    uint64_t span_bytes, store_bytes, first_seq;
    int verify;
    uint64_t deadline_ns;                /* UINT64_MAX: none */
    int64_t number;
    bool sweeps;                         /* launch/orphans can be used */

    struct arena arena;
    struct children children;
    struct start start;
    struct program program;
    struct black_box box;

    enum attempt_ending ending;
    int told_by;                         /* the signal of ENDING_TOLD */
    int living_then;                     /* ranks living when the end began */
    struct start_failure failure;
    uint64_t term_ns, kill_ns, leave_ns; /* next steps of the end; UINT64_MAX: none, or done */
    bool sweeping, killed;
};

/* Runs it to its end. Then ending, children and failure say how it went. -errno with *why: nothing
 * was started. */
int  attempt_run(struct attempt *a, struct text *why);
void attempt_free(struct attempt *a);

#endif
