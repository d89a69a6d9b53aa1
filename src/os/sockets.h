/* Job: which sockets of other processes listen under abstract names, as far as /proc shows it.
 * Owns: nothing.
 * Never: connects. */
#ifndef TUTTI_OS_SOCKETS_H
#define TUTTI_OS_SOCKETS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Its network namespace; 0: that cannot be seen. Abstract names are other names in each. */
uint64_t sockets_namespace(pid_t pid);

/* Asks `is` about each name in the namespace of this process that is listened on, until it
 * says yes. */
bool sockets_any(pid_t pid, bool (*is)(const char *name, void *arg), void *arg);

/* One process of each network namespace but ours that can be seen: at most `room` of them.
 * How many. */
int  sockets_elsewhere(pid_t *pids, int room);

#endif
