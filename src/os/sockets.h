/* Job: find sockets of other processes that listen under abstract names, as /proc shows them.
 * Owns: nothing.
 * Never: connects. */
#ifndef TUTTI_OS_SOCKETS_H
#define TUTTI_OS_SOCKETS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The process's network namespace, which has abstract names of its own. 0: not visible. */
uint64_t sockets_namespace(pid_t pid);

/* Calls `is` for each listening name in the network namespace of `pid`, until it returns true. */
bool sockets_any(pid_t pid, bool (*is)(const char *name, void *arg), void *arg);

/* One process of each other visible network namespace, at most `room`. Returns how many. */
int  sockets_elsewhere(pid_t *pids, int room);

#endif
