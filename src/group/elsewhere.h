/* Job: find who tries to meet under the name of this meeting where its ranks cannot meet them: as
 *      another user, in another network namespace.
 * Owns: nothing; what it finds it notes as refused.
 * Never: connects to anybody. */
#ifndef TUTTI_GROUP_ELSEWHERE_H
#define TUTTI_GROUP_ELSEWHERE_H

#include "arena/arena.h"

/* name: one of the meeting's abstract names. Milliseconds, so it is for those who wait in vain. */
void elsewhere_look(const struct arena *arena, const char *name);

#endif
