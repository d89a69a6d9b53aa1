/* Job: write this process's stack where somebody outside can read it, when asked by a signal.
 * Owns: the handler of STACK_SIGNAL, if the program has none; a memory file of the name STACK_FILE.
 * Never: writes unless it is asked; keeps more than STACK_MOST bytes. */
#ifndef TUTTI_OS_STACK_H
#define TUTTI_OS_STACK_H

#include <signal.h>

/* By default it is ignored: a process without the handler loses nothing by it. */
#define STACK_SIGNAL SIGURG
#define STACK_FILE "stack-of-tutti"
enum { STACK_MOST = 1 << 20 };

/* Once a process. Afterwards the signal appends the frames of the thread that gets it to the file.
   Other handlers may append to the file, too, and call this one (Python's faulthandler). */
void stack_begin(void);

#endif
