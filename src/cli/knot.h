/* Job: find in a copied arena what a job's oldest wait waits for, over other waits, to the ranks
 *      that wait for nobody.
 * Owns: nothing, and keeps nothing.
 * Never: asks the system, prints. Numbers of the copy may be wrong, as for muster.h. */
#ifndef TUTTI_CLI_KNOT_H
#define TUTTI_CLI_KNOT_H

#include "cli/muster.h"

enum knot_kind {
    KNOT_NONE,                        /* nobody waits */
    KNOT_KEPT,                        /* the keepers have not come, and wait for nobody */
    KNOT_JOIN,                        /* the keepers have not joined */
    KNOT_CIRCLE,                      /* the keepers wait, and in the end for themselves */
    KNOT_THERE,                       /* all have come: it is being carried out */
    KNOT_OPEN                         /* whom it waits for is not known */
};

/* waiters: those of the oldest wait. over: ranks by whose waits it was followed, one a wait.
   keepers: the end of that. */
struct knot {
    enum knot_kind kind;
    int waiters_n, over_n, keepers_n;
    int waiters[RANKS_MAX], over[RANKS_MAX], keepers[RANKS_MAX];
};

void knot_find(struct knot *k, const struct glimpse *g, const struct muster *m);

#endif
