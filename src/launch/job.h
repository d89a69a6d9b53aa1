/* Job: run a program as N ranks, once or again after a failure, and say how it ended.
 * Owns: the job's arena (the launcher makes it, the ranks inherit it) and each seat's `status`.
 * Never: command lines (cli/), operations of the ranks. */
#ifndef TUTTI_LAUNCH_JOB_H
#define TUTTI_LAUNCH_JOB_H

#include <stdbool.h>
#include <stdint.h>

enum job_bind { JOB_BIND_NONE, JOB_BIND_CORE, JOB_BIND_NUMA };

enum { JOB_TIMED_OUT = 124, JOB_NOT_EXECUTABLE = 126, JOB_NOT_FOUND = 127, JOB_UNREAD = 141 };   /* as env, timeout, and a shell */

struct job {
    int size;
    enum job_bind bind;
    int64_t timeout_ms;          /* of the whole job, restarts included; not above 0: none */
    int64_t grace_ms;            /* from the first failure, or a signal to end, to SIGKILL; negative: never */
    int64_t restarts;            /* how often the job may start again after a failure */
    bool tag;                    /* "[rank] " before each line */
    bool local_rank_arg;         /* --local_rank=R behind the program's own arguments */
    char **argv;                 /* the program and its arguments, NULL at the end */
};

/* Runs it to its end and says on stderr what went wrong. The exit status for the shell: 0 if every rank's was 0, else that of
   the rank that failed first (128 + signal if it was killed), 128 + signal if we were told to end, or one of the above.
   JOB_UNREAD: something was to be written that nobody reads any more. */
int job_run(const struct job *job);

#endif
