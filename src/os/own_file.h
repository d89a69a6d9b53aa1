/* Job: say from which file this code was loaded: the shared library, or the program that has it.
 * Owns: nothing.
 * Never: opens it. */
#ifndef TUTTI_OS_OWN_FILE_H
#define TUTTI_OS_OWN_FILE_H

#include "base/text.h"

#include <sys/types.h>

void own_file(struct text *t);

/* The program that a process runs; "?" if that cannot be seen. */
void program_file(struct text *t, pid_t pid);

#endif
