/* Job: make what a rank is started with: the program's path, its arguments, its environment.
 * Owns: nothing shared.
 * Never: starts anything. */
#ifndef TUTTI_LAUNCH_PROGRAM_H
#define TUTTI_LAUNCH_PROGRAM_H

#include "launch/job.h"

#include <limits.h>
#include <stddef.h>

struct program {
    char path[PATH_MAX];
    char **argv, **envp;                              /* before argv[0] there is a free place */
    /* the places in argv and envp that differ from rank to rank */
    char rank[32], local_rank[32], role_rank[32], argument[32];
    char own[18][192];                                /* the variables that are the same for all */
};

struct program_world { int arena_fd; unsigned long long inode; const char *job; int64_t attempt; };

/* Finds the program by PATH, as execvp does. 0, -ENOENT, -EACCES (there, but not executable) … */
int  program_find(char *path, size_t room, const char *name);
/* Makes the argument and environment vectors. 0 or -ENOMEM. */
int program_make(struct program *program, const struct job *job, const struct program_world *world);
void program_for_rank(struct program *program, int rank);
/* A rank's own vectors and texts, valid while `from` is. 0 or -ENOMEM. */
int  program_copy(struct program *copy, const struct program *from, int rank);
void program_free(struct program *program);

#endif
