/* Job: leave nothing behind of programs that start others: processes under this one, folders.
 * Owns: nothing.
 * Never: by name: a process is ended by its id, and only one that this one has started. */
#ifndef PERF_CLEANUP_H
#define PERF_CLEANUP_H

#include <sys/types.h>

enum { CLEANUP_MAX = 256 };

/* Puts the processes under pid into tree, parents first, from tree[n] on; returns how many there
 * are then. */
int cleanup_tree(pid_t pid, pid_t tree[CLEANUP_MAX], int n);
void cleanup_reap(void);                    /* the children that have ended */
void cleanup_kill(void);                    /* all under this process */
void cleanup_end(void);                     /* the same, until none is left; for a subreaper */
void cleanup_erase(const char *folder);

#endif
