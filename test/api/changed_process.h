/* Job: the life of ranks around a change of their process: every kind of operation, the change,
 * all of them again; then one rank is killed, which the others must hear, and leave.
 * Owns: the job, its team, and a folder that all may write to.
 * Never: what the change is. */
#ifndef TUTTI_TEST_API_CHANGED_PROCESS_H
#define TUTTI_TEST_API_CHANGED_PROCESS_H

#include "support/team.h"

#include <stdbool.h>
#include <stdio.h>

enum { RANKS = 3, VICTIM = 2, SMALL = 100 };

/* before: tutti_init; after: the first course; last: what is to be so when the world is
 * over. 0: well. */
struct change {
    int (*before)(int rank);
    int (*after)(tutti_comm *world, int rank, struct team *team);
    int (*last)(int rank);
    /* What one of them has saved another may not open. */
    bool no_files;
};

/* TUTTI_ALGORITHM by which peers' private memory is read. */
extern const char changed_pulls[];

extern struct changed { struct change change; char job[64], folder[64]; } changed;

/* Returns the line of what went wrong, and says it. */
#define OR_LINE(condition) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "%s:%d: rank %d: %s\n%s\n", __FILE__, __LINE__, tutti_rank(world), \
                    #condition, tutti_explain(world)); \
            return __LINE__; \
        } \
    } while (0)

/* Every kind of operation, with right results: 0, or the line of the first that was wrong. */
int changed_course(tutti_comm *world, int rank);
/* All of it by this rule (NULL: none), asserted. ended: looks at the team if all was well;
 * may be NULL. */
void changed_through(struct change change, const char *rule, void (*ended)(struct team *team));

/* For cmocka_run_group_tests: the folder, and spans of 64 MiB. */
int changed_begin(void **state);
int changed_end(void **state);

#endif
