/* Job: count the processes that the kernel has killed for want of memory.
 * Owns: nothing.
 * Never: knows which ones. */
#ifndef TUTTI_OS_OOM_H
#define TUTTI_OS_OOM_H

#include <stdint.h>

/* In this process's control group, or, where that does not say, on this machine. 0: none, or not
   known. Only grows. */
uint64_t oom_kills(void);

/* The same by a text like /proc/self/cgroup below root, for tests. 1 and *kills, or 0. */
int oom_kills_in(const char *root, const char *text, uint64_t *kills);

#endif
