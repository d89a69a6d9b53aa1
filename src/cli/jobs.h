/* Job: look once at all jobs of this machine that the caller may see, or at the one in a black box.
 * Owns: the list it returns; between two looks no descriptor and no mapping of theirs is held.
 * Never: prints; decides what counts as which exit status. */
#ifndef TUTTI_CLI_JOBS_H
#define TUTTI_CLI_JOBS_H

#include "cli/blockers.h"
#include "cli/held_job.h"
#include "os/proc_files.h"

#include <sys/types.h>

/* One arena. why: "" or, in a sentence, why it could not be read; then there is nothing else.
   path: NULL, or that of the black box it is in, with no process to look at any more. */
struct seen_job {
    const char *path;
    struct box box;
    pid_t pid;                        /* of its first rank, or of another process */
    uid_t uid;                        /* whose it is */
    uint64_t device, inode;
    char why[400];
    struct rank_states m;
    struct blockers blockers;
};

/* refused: processes of the caller that may not be looked at. */
struct seen_jobs { struct seen_job *at; size_t n, refused; uint64_t taken_ns; };

/* Looks again and again: the processes of the jobs are looked for once a second, those of one job
 * once in five, since that is most of the cost. known: begins with zeros. only: NULL, or a job's
 * name, or the pid of one of its processes, or a box's path. 0 or -errno. */
struct known_jobs { struct proc_files files; uint64_t found_ns, good_ns; };
int  jobs_look(struct seen_jobs *j, struct known_jobs *known, const char *only, uint64_t stuck_ns);
void jobs_drop(struct seen_jobs *j);
/* What has changed since `before`, in each job that is in both. */
void jobs_compare(struct seen_jobs *j, const struct seen_jobs *before);
/* Two looks, a short while apart: of what has changed between them j tells. */
int  jobs_look_twice(struct seen_jobs *j, const char *only, uint64_t stuck_ns);
/* Holds the one job that `only` names, or that in a box: 1, and held->why may say that it cannot be
 * read. 0: there is no such job. -errno. */
int  jobs_hold(struct held_job *held, const char *only);

#endif
