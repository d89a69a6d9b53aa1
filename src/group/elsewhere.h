/* Job: find processes that try to meet under this meeting's name but cannot be met: those of
 *      another user or in another network namespace.
 * Owns: nothing; notes what it finds as refused.
 * Never: connects to a socket. */
#ifndef TUTTI_GROUP_ELSEWHERE_H
#define TUTTI_GROUP_ELSEWHERE_H

#include "arena/arena.h"

/* name: one of the meeting's abstract names. Takes milliseconds: for ranks that wait in vain. */
void elsewhere_look(const struct arena *arena, const char *name);

#endif
