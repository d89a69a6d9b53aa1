/* Job: describe what a launcher is asked for: a program as N ranks; how they are bound, ended,
 *      restarted.
 * Owns: nothing.
 * Never: runs it (supervisor.h). */
#ifndef TUTTI_LAUNCH_JOB_H
#define TUTTI_LAUNCH_JOB_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

enum job_bind { JOB_BIND_NONE, JOB_BIND_CORE, JOB_BIND_NUMA };

/* as in env, timeout and a shell */
enum { JOB_TIMED_OUT = 124, JOB_NOT_EXECUTABLE = 126, JOB_NOT_FOUND = 127, JOB_UNREAD = 141 };

struct job {
    int size;
    enum job_bind bind;
    int64_t timeout_ms;          /* of the whole job, restarts included; 0 or less: none */
    /* from the first failure, or a signal to end, to SIGKILL; negative: never */
    int64_t grace_ms;
    int64_t restarts;            /* how often the job may start again after a failure */
    const char *run_id;          /* TORCHELASTIC_RUN_ID; NULL: the job's name */
    int master_port;             /* MASTER_PORT; 0: one that is free */
    bool tag;                    /* "[rank] " before each line */
    bool tty;                    /* each rank writes to a terminal of its own */
    bool local_rank_arg;         /* --local_rank=R behind the program's own arguments */
    /* writes why the ranks of the job that process `launcher` holds wait; NULL: nobody can say */
    void (*why)(FILE *out, pid_t launcher);
    char **argv;                 /* the program and its arguments, NULL at the end */
};

/* A single rank writes to our stdout and stderr itself: progress bars stay as they are. */
static inline bool job_gathers(const struct job *job)
{
    return job->size > 1 || job->tag || job->tty;
}

#endif
