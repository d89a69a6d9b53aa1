/* Job: text to stderr from within a wait: whole, or not at all.
 * Owns: the pid of the process whose text is under way.
 * Never: blocks longer than SAY_MOST_NS, ends the process. */
#ifndef TUTTI_OS_SAY_H
#define TUTTI_OS_SAY_H

#include <stddef.h>

enum { SAY_MOST_NS = 100000000 };

/* Writes a text. A reader of stderr that has stopped delays a helper thread but no rank; until that
 * ends further texts are dropped. */
void say(const char *text, size_t bytes);

#endif
