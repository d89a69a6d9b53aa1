/* Job: leave nothing behind of programs that start others: processes under this one, folders.
 * Owns: nothing.
 * Never: by name: a process is ended by its id, and only one that this one has started. */
#ifndef PERF_LITTER_H
#define PERF_LITTER_H

#include <sys/types.h>

enum { LITTER_MAX = 256 };

/* Puts the processes under pid into tree, parents first, from tree[n] on; returns how many there are then. */
int litter_tree(pid_t pid, pid_t tree[LITTER_MAX], int n);
void litter_reap(void);                    /* the children that have ended */
void litter_kill(void);                    /* all under this process */
void litter_end(void);                     /* the same, until none is left; for a subreaper */
void litter_erase(const char *folder);

#endif
