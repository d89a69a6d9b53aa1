/* Job: processes that ranks leave behind: find and end them, so that nothing of the job
 *      outlives it.
 * Owns: nothing shared.
 * Never: the ranks themselves. */
#ifndef TUTTI_LAUNCH_ORPHANS_H
#define TUTTI_LAUNCH_ORPHANS_H

#include <stdbool.h>

/* From now on orphans of our descendants become our children. false: not possible, or we have
   children of somebody else's making (a shell that became us), whom we could not tell from ours:
   then strays are left alone. */
bool orphans_begin(void);
bool orphans_any(void);               /* children left, when all ranks have ended and been reaped */
void orphans_signal(int number);      /* to all of them */

#endif
