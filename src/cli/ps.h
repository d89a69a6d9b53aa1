/* Job: declare the ways in which tutti ps shows a look at jobs.
 * Owns: nothing.
 * Never: looks at anything itself, but for why_write. */
#ifndef TUTTI_CLI_PS_H
#define TUTTI_CLI_PS_H

#include "cli/jobs.h"

#include <stdio.h>

/* exit statuses: those of enum job_status, and these */
enum { LOOK_USAGE = 64, LOOK_NO_JOB = 65, LOOK_UNREADABLE = 66, LOOK_FAILED = 70 };

enum { PS_SCHEMA = 1 };               /* of the JSON and of the metrics; raised when a name goes */
enum { SCREEN_COLUMNS = 80, SCREEN_LINES = 24 };

#define PS_STUCK_NS UINT64_C(30000000000)
/* A number is of seconds, "2" or "0.1"; "500ms", "2min". 0 or -EINVAL. */
int  ps_seconds(const char *s, uint64_t *ns);

/* Looks twice, and says why each job waits. only: as for jobs_look. 0 or -errno. */
int  why_write(FILE *out, const char *only, uint64_t stuck_ns);

/* The worst of all. */
int  ps_status(const struct seen_jobs *j);
/* The exit status behind what stdout shows. only: as for jobs_look. */
int  ps_end(const struct seen_jobs *j, const char *only);
/* Prints why there is no look at all; LOOK_FAILED. verb: "ps", "why". */
int  ps_failed(const char *verb, int error);
/* What there is to say where no job is. only: as for jobs_look. */
void ps_nothing(FILE *out, const struct seen_jobs *j, const char *only);
/* The same as an error of a verb that wants a job; LOOK_NO_JOB. */
int  ps_no_job(const char *verb, const char *only);

/* one line a job, a line a rank; but at a terminal wide ones are continued */
void ps_line(FILE *out, const struct seen_job *job);
void ps_every(FILE *out, const struct seen_job *job);
void ps_classes(FILE *out, const struct seen_job *job);              /* fits a screen */
/* five lines at most, wide ones continued, and with `stack` the stack of one rank */
void why_job(FILE *out, const struct seen_job *job, bool stack);
void ps_json(FILE *out, const struct seen_jobs *j);
void ps_prometheus(FILE *out, const struct seen_jobs *j);

/* Writes a box of that job to a file, NULL: to a place of its own, and prints its path. An exit
 * status. */
int  ps_save(const char *job, const char *file);

/* A line that continues, indented, in further lines of SCREEN_COLUMNS. out: NULL: only counts.
   Returns how many lines. */
int  ps_wrap(FILE *out, const char *line);
/* The same, but what is continued begins at that column. */
int  ps_fold(FILE *out, const char *line, int below);

/* "job night (pid 4711): 8 ranks, fine" */
void ps_add_head(struct text *t, const struct seen_job *job);
/* What ranks[0 … n) of a class do: "ranks 0-6: barrier #88 at a.py:41 for 2 min, asleep". */
void ps_add_class(struct text *t, const struct rank_states *m, const int *ranks, int n);

#endif
