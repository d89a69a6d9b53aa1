/* Job: start a library thread inside the user's program.
 * Owns: nothing.
 * Never: knows its work, or ends it. */
#ifndef TUTTI_OS_THREAD_H
#define TUTTI_OS_THREAD_H

#include <pthread.h>

/* Starts it with all signals blocked: signals are for the program's own threads. 0 or -errno. */
int thread_start(pthread_t *thread, void *(*run)(void *arg), void *arg);

#endif
