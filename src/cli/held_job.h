/* Job: hold a copy of one job's arena with what the system knows of its ranks: of a job that runs,
 *      or of a black box.
 * Owns: that copy, and the box.
 * Never: holds a descriptor or a mapping of the job's; prints. */
#ifndef TUTTI_CLI_HELD_JOB_H
#define TUTTI_CLI_HELD_JOB_H

#include "box/box.h"
#include "cli/rank_states.h"

/* why: "" or, in a sentence, why it could not be read; then there is nothing else. over: it has
   ended since it was found. box: its bytes are NULL if the job runs. */
struct held_job {
    pid_t pid;                        /* of its first rank, or of another process */
    uid_t uid;                        /* whose it is */
    char why[400];
    bool over;
    struct arena_copy copy;
    struct rank_process *process;     /* [size of the world] */
    struct clock_point now;           /* when it was copied, by this process's clock */
    struct box box;
};

/* The one in a box. 0 or -ENOMEM. */
int  held_job_unpack(struct held_job *h, const char *path);
void held_job_drop(struct held_job *h);

/* Does this word name a box, and not a job? */
bool held_job_is_box(const char *word);

#endif
