/* Job: work that the kernel may hold up for as long as it likes, done by a thread of its own:
 *      waited for a while, and then left to itself.
 * Owns: that thread, until it ends.
 * Never: ends it. */
#ifndef TUTTI_OS_TIMED_CALL_H
#define TUTTI_OS_TIMED_CALL_H

#include <stdbool.h>
#include <stdint.h>

/* run(arg), and waits for its end, at most so long. True: it is over. False: it goes on, and what
   arg points to is its own. Where no thread can be had it is done here and now. */
bool timed_call_run(void (*run)(void *arg), void *arg, uint64_t patience_ns);

#endif
