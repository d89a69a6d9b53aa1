/* Job: keep a black box of a job that fails or is killed: take the picture when its end begins,
 *      write it when all ranks have ended.
 * Owns: the picture.
 * Never: holds up the ranks or changes the job's exit status.
 *
 * None is written where none is wanted (TUTTI_BOX), where no rank has joined, where all ended with
 * 0, and where the program has handled what happened: survivors have agreed on who is left, and at
 * least half of all ranks ended with 0. */
#ifndef TUTTI_LAUNCH_BLACK_BOX_H
#define TUTTI_LAUNCH_BLACK_BOX_H

#include "box/picture.h"
#include "launch/children.h"

struct black_box { struct picture picture; bool taken; };

void black_box_take(struct black_box *b, const struct arena *arena);
/* After the end of all ranks. report: lines that say how the job ended. True: *said is its path, or
 * why there is none. */
bool black_box_write(struct black_box *b, const struct children *children, const char *report,
                     struct text *said);
void black_box_drop(struct black_box *b);

#endif
