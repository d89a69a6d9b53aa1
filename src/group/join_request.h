/* Job: what a rank says when it joins a job.
 * Owns: nothing.
 * Never: says how it joins (join.h, meet.h). */
#ifndef TUTTI_GROUP_JOIN_REQUEST_H
#define TUTTI_GROUP_JOIN_REQUEST_H

#include "arena/arena.h"

struct join_request {
    const char *name;           /* meeting name (abstract or '/path'); NULL: there is only fd */
    /* inherited arena; -1: none, join by name. Ours after the join if arena->fd is the same */
    int  fd;
    int  rank, size;
    int  timeout_ms;            /* for all to arrive; < 0: none */
    int  several;               /* this process holds or will hold several ranks */
    struct arena_plan plan;     /* the arena to create, if this rank is the host */
    void (*lay)(const char *said, char rules[RULES_TEXT]);  /* completes plan.rules; NULL: as is */
};

#endif
