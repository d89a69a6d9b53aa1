/* Job: reap a child in two steps: its status can be written down before its pid is free.
 * Owns: nothing.
 * Never: waits for a child that still runs. */
#ifndef TUTTI_OS_REAP_H
#define TUTTI_OS_REAP_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

/* Makes the system keep the status of ended children, until they are reaped. True: it did not do so
   before; the caller restores *found for SIGCHLD at the end. */
bool reap_begin(struct sigaction *found);

/* An ended child of this pid (-1: any), not reaped by this; *status as of waitpid. 0: none yet. -1:
   no such child: it was reaped elsewhere, or the process ignores SIGCHLD. Its status is lost, and
   counts as a failure. */
pid_t reap_look(pid_t pid, int *status);

/* Reaps the child: its status cannot be asked for any more. */
void reap_take(pid_t pid);

#endif
