/* Job: find in a copied arena what a job's oldest wait waits for, over other waits, to the ranks
 *      that wait for nobody.
 * Owns: nothing, and keeps nothing.
 * Never: asks the system, prints. Numbers of the copy may be wrong, as for rank_states.h. */
#ifndef TUTTI_CLI_BLOCKERS_H
#define TUTTI_CLI_BLOCKERS_H

#include "cli/rank_states.h"

enum blocked_by {
    BLOCKED_NONE,                        /* nobody waits */
    BLOCKED_KEPT,                        /* the keepers have not come, and wait for nobody */
    BLOCKED_JOIN,                        /* the keepers have not joined */
    BLOCKED_KEY,                         /* a key of the store is not set; the keepers are free */
    BLOCKED_CIRCLE,                      /* the keepers wait, and in the end for themselves */
    BLOCKED_THERE,                       /* all have come: it is being carried out */
    BLOCKED_OPEN                         /* whom it waits for is not known */
};

/* waiters: those of the oldest wait. over: ranks by whose waits it was followed, one a wait.
   keepers: the end of that; of those in `over` they are that one's peers in the same wait, too. */
struct blockers {
    enum blocked_by kind;
    int waiters_n, over_n, keepers_n;
    int key;                             /* of BLOCKED_KEY: the rank that waits for it */
    int waiters[RANKS_MAX], over[RANKS_MAX], keepers[RANKS_MAX];
};

void blockers_find(struct blockers *k, const struct arena_copy *g, const struct rank_states *m);

#endif
