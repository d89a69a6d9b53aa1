/* Job: run a call that the kernel may block without limit, in a thread of its own, and wait for it
 *      for a limited time.
 * Owns: that thread, until it ends.
 * Never: ends it. */
#ifndef TUTTI_OS_TIMED_CALL_H
#define TUTTI_OS_TIMED_CALL_H

#include <stdbool.h>
#include <stdint.h>

/* Starts run(arg) and waits for its end, at most patience_ns. True: it has ended. False: it goes
   on, and owns *arg. Without a thread it runs here. */
bool timed_call_run(void (*run)(void *arg), void *arg, uint64_t patience_ns);

#endif
