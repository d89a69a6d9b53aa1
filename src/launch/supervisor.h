/* Job: run a program as N ranks, once or again after a failure, and say how it ended.
 * Owns: the job's arena (the launcher makes it, the ranks inherit it) and each seat's `status`.
 * Never: reads command lines (cli/); takes part in operations of the ranks. */
#ifndef TUTTI_LAUNCH_SUPERVISOR_H
#define TUTTI_LAUNCH_SUPERVISOR_H

#include "launch/job.h"

/* Runs it to its end and says on stderr what went wrong. The exit status for the shell: 0 if every
   rank's was 0; else that of the rank that failed first (128 + signal if it was killed), 128 +
   signal if a signal ended the job, or one of job.h. JOB_UNREAD: something was to be written that
   nobody reads any more. */
int supervisor_run(const struct job *job);

#endif
