/* Job: find out whether memcheck (valgrind) runs this process.
 * Owns: nothing.
 * Never: acts on it. */
#ifndef TUTTI_OS_CHECKED_H
#define TUTTI_OS_CHECKED_H

#include <stdbool.h>

bool checked_by_memcheck(void);                      /* takes no lock */

#endif
