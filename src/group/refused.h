/* Job: note which processes were refused at a meeting, or could not come, and why. The report of a
 *      wait in vain shows it.
 * Owns: join.refusals, with all ranks that refuse; a rank's copy of the notes from one meeting to
 *       the next.
 * Never: refuses a process; waits.
 *
 * E82 refused: a refusing rank takes a place by CAS, writes the note, then ready (release); a
 *    reader loads ready (acquire), then the note. A rank that dies in between leaves an empty
 *    place. */
#ifndef TUTTI_GROUP_REFUSED_H
#define TUTTI_GROUP_REFUSED_H

#include "arena/arena.h"

struct refused { int n; struct { int32_t rank, error; char text[REFUSAL_TEXT]; } one[REFUSALS]; };

/* Adds a note. Nothing if there is one with that rank and error, or no place. rank -1: unknown. */
__attribute__((format(printf, 4, 5))) void refused_note(const struct arena *arena, int rank,
                                                        int error, const char *format, ...);
/* size: the number of ranks that the refused rank expected */
void refused_size(const struct arena *arena, int rank, int pid, int size);
void refused_second(const struct arena *arena, int rank, int pid);  /* that rank has come already */

/* keep: copies the arena's notes into `kept`. carry: writes the notes of `kept` into the arena. */
void refused_keep(struct refused *kept, const struct arena *arena);
void refused_carry(const struct refused *kept, const struct arena *arena);

/* Adds "; refused: …, …; elsewhere meet under this name: …", or nothing. Leaves out ranks that have
 * come since; arena NULL: none has. */
void refused_explain(const struct refused *kept, const struct arena *arena, struct text *why);

#endif
