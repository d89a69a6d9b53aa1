/* Job: the names of base/atomic.h for the library whose cache lines are counted: those of the
 *      interleaving explorer, and a line that is fetched ahead.
 * Owns: nothing.
 * Never: included but by base/atomic.h. */
#ifndef PERF_LINES_ATOMIC_H
#define PERF_LINES_ATOMIC_H

#define cpu_own explorers_cpu_own                    /* there it does nothing */
#include <test/explore/atomic.h>
#undef cpu_own

void lines_own(const void *at);
static inline void cpu_own(const void *at) { lines_own(at); }

#endif
