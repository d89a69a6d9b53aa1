/* Job: does memcheck (valgrind) run this process?
 * Owns: nothing.
 * Never: what follows from it. */
#ifndef TUTTI_OS_CHECKED_H
#define TUTTI_OS_CHECKED_H

#include <stdbool.h>

bool checked_by_memcheck(void);                      /* takes no lock */

#endif
