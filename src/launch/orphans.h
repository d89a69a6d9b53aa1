/* Job: find and end the processes that ranks leave behind, so that nothing of the job outlives it.
 * Owns: nothing shared.
 * Never: touches the ranks. */
#ifndef TUTTI_LAUNCH_ORPHANS_H
#define TUTTI_LAUNCH_ORPHANS_H

#include <stdbool.h>

/* From now on orphans of our descendants become our children. False: that is not possible, or we
   have children that others made (a shell that became us) and that we could not tell from ours.
   Then stray processes are left alone. */
bool orphans_begin(void);
bool orphans_any(void);               /* children left, when all ranks have ended and been reaped */
void orphans_signal(int number);      /* sends it to all of them */

#endif
