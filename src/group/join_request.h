/* Job: what a rank says when it joins a job.
 * Owns: nothing.
 * Never: how it joins (join.h, meet.h). */
#ifndef TUTTI_GROUP_JOIN_REQUEST_H
#define TUTTI_GROUP_JOIN_REQUEST_H

#include "arena/arena.h"

struct join_request {
    const char *name;           /* meeting name (abstract or '/path'); NULL: there is only fd */
    /* arena handed down by inheritance, or -1: then by name alone; taken over if arena->fd is
     * it afterwards */
    int  fd;
    int  rank, size;
    int  timeout_ms;            /* for all to arrive; < 0 none */
    int  several;               /* this process holds or will hold several ranks */
    struct arena_plan plan;     /* what to create if we are the one who creates */
    /* the whole rules of that plan, from what it says; NULL: as it says */
    void (*lay)(const char *said, char rules[RULES_TEXT]);
};

#endif
