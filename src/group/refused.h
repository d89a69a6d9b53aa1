/* Job: who came to a meeting and was not let in, or could not come, and why, so that a wait that
 *      ends in vain can say so.
 * Owns: join.refusals, with all who refuse; what a rank remembers of them from one meeting
 *       to the next.
 * Never: refuses anybody; waits.
 *
 * E82 refused: who refuses takes a place by CAS, writes what it has to say, then ready (release);
 *    who explains loads ready (acquire), then the rest. One that dies in between leaves a place
 *    that says nothing. */
#ifndef TUTTI_GROUP_REFUSED_H
#define TUTTI_GROUP_REFUSED_H

#include "arena/arena.h"

struct refused { int n; struct { int32_t rank, error; char text[REFUSAL_TEXT]; } one[REFUSALS]; };

/* One of a rank and an error is enough; further ones, and those for which there is no place, are
 * not noted. rank -1: it said none. */
__attribute__((format(printf, 4, 5))) void refused_note(const struct arena *arena, int rank,
                                                        int error, const char *format, ...);
/* it says that there are so many ranks */
void refused_size(const struct arena *arena, int rank, int pid, int size);
void refused_second(const struct arena *arena, int rank, int pid);  /* that rank has come already */

/* Adds what the arena says to what is remembered; says in the arena what is remembered. */
void refused_keep(struct refused *kept, const struct arena *arena);
void refused_carry(const struct refused *kept, const struct arena *arena);

/* "; refused: …, …; elsewhere meet under this name: …", without those that have come since (arena
 * NULL: nobody has); or nothing. */
void refused_explain(const struct refused *kept, const struct arena *arena, struct text *why);

#endif
