/* Job: the end of a child in two steps, so that what it was can be written down before its
 *      number goes.
 * Owns: nothing.
 * Never: a wait for an end that is yet to come. */
#ifndef TUTTI_OS_REAP_H
#define TUTTI_OS_REAP_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

/* From here on the system keeps how this process's children end, for it to ask. True: it did not,
   and *found is to be set again for SIGCHLD afterwards. */
bool reap_begin(struct sigaction *found);

/* A child that has ended, of this number or (-1) any, and *status as waitpid gives it; it stays. 0:
   none so far. -1: there is no such child: it has been waited for elsewhere, or the process ignores
   SIGCHLD, and how it ended cannot be known: never well. */
pid_t reap_look(pid_t pid, int *status);

/* From here on nobody can learn from the system how it ended. */
void reap_take(pid_t pid);

#endif
