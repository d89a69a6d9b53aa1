/* Job: ranks for the tests of this floor: children that join by a request, report how it went, and stay until they are let go.
 * Owns: the children, and the memory they report in.
 * Never: an assertion; the test makes those from the reports. */
#ifndef TUTTI_TEST_GROUP_CREW_H
#define TUTTI_TEST_GROUP_CREW_H

#include "group/join.h"

#include <stdbool.h>
#include <sys/types.h>

enum { CREW_MOST = 160, CREW_PATIENCE_S = 60 };

struct crew_report {
    shared32 done;                    /* 1: all below is written */
    int error, hosted;
    uint32_t cpus, size, mark_mine;
    uint64_t birth, began_ns, ended_ns;
    char why[512];
};

struct crew {
    struct crew_report *report;       /* [CREW_MOST], shared */
    shared32 *let_go;                 /* 1: the children leave and end */
    pid_t pid[CREW_MOST];             /* 0: not started or reaped */
};

void crew_open(struct crew *crew);
void crew_close(struct crew *crew);                        /* kills and reaps who is left */
void crew_start(struct crew *crew, int slot, const struct join_request *request);
/* The same, and it is killed `dies_ns` after it began to join, wherever it is then; crew_reap waits for that. */
void crew_start_mortal(struct crew *crew, int slot, const struct join_request *request, uint64_t dies_ns);
struct crew_report *crew_wait(struct crew *crew, int slot);        /* until it has reported; NULL: it died or patience ran out */
void crew_let_go(struct crew *crew);                       /* all leave in good order and are reaped */
void crew_kill(struct crew *crew, int slot);               /* SIGKILL and reaped */
int  crew_reap(struct crew *crew, int slot);               /* waits for its end; status as waitpid gives it */

/* Waits until this rank sits in the arena of the child in `slot`, looked at from outside. false: it ended, or patience ran out. */
bool crew_sits(struct crew *crew, int slot, int rank);

/* A request for a job of `size` ranks under a name of its own. */
struct join_request crew_request(const char *name, int rank, int size);
const char *crew_name(char room[96], const char *what);    /* no other test or process has it */
int crew_open_fds(void);                                   /* how many descriptors this process has */
int crew_maps(void);                                       /* how many mappings of a tutti memfd */
int crew_prove(int normal, int proving);                   /* how often: the second in ./bootstrap prove */

#endif
