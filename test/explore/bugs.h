/* Job: the bugs that can be switched on in the explorer's build of the library, one at a time.
 * Owns: explore_bug.
 * Never: how a bug is found. A bug of the library is bugs/<name>.patch; which scenario must find it
 *        says bugs.txt. */
#ifndef TUTTI_EXPLORE_BUGS_H
#define TUTTI_EXPLORE_BUGS_H

#include "explore/bug_names.h"         /* PATCHED_BUGS: a name for each patch, made by CMake */

#include <stddef.h>

#define EXPLORE_BUGS(B) \
    PATCHED_BUGS(B) \
    B(deaths_left_out)  /* of the explorer: a death is offered at that rank's own steps only */ \
    /* of the explorer: states are taken for the same whatever is in memory, and whoever \
     * is asleep */ \
    B(words_left_out)

enum explore_bug {
    BUG_none,
#define B(name) BUG_##name,
    EXPLORE_BUGS(B)
#undef B
    BUG_COUNT
};

extern enum explore_bug explore_bug;
#define SEEDED(bug) (explore_bug == BUG_##bug)
/* From here on these words of the caller's are written plainly; they were shared. */
void explore_plainly(const void *at, size_t bytes);

#endif
