/* Job: a thread of ours in a program of somebody else.
 * Owns: nothing.
 * Never: what it does, or its end. */
#ifndef TUTTI_OS_THREAD_H
#define TUTTI_OS_THREAD_H

#include <pthread.h>

/* With all signals blocked: those of the process are for the program's own threads. 0 or -errno. */
int thread_start(pthread_t *thread, void *(*run)(void *arg), void *arg);

#endif
