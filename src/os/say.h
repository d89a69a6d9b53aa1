/* Job: text to stderr from within a wait: whole, or not at all.
 * Owns: which process has a text under way.
 * Never: blocks longer than SAY_MOST_NS, ends the process. */
#ifndef TUTTI_OS_SAY_H
#define TUTTI_OS_SAY_H

#include <stddef.h>

enum { SAY_MOST_NS = 100000000 };

/* A reader that has stopped holds up a thread of ours and no rank; as long as it does, further
 * texts are dropped. */
void say(const char *text, size_t bytes);

#endif
