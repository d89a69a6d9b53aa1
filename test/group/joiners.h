/* Job: ranks for the tests of this floor: children that join by a request, report how it went, and
 *      stay until they are let go.
 * Owns: the children, and the memory they report in.
 * Never: an assertion; the test makes those from the reports. */
#ifndef TUTTI_TEST_GROUP_JOINERS_H
#define TUTTI_TEST_GROUP_JOINERS_H

#include "group/join.h"

#include <stdbool.h>
#include <sys/types.h>

enum { JOINERS_MOST = 160, JOINERS_PATIENCE_S = 60 };

struct joiners_report {
    shared32 done;                    /* 1: all below is written */
    int error, hosted;
    uint32_t cpus, size, mark_mine;
    uint64_t birth, began_ns, ended_ns;
    char why[512];
};

struct joiners {
    struct joiners_report *report;       /* [JOINERS_MOST], shared */
    shared32 *let_go;                 /* 1: the children leave and end */
    pid_t pid[JOINERS_MOST];             /* 0: not started or reaped */
    bool unmarked;                    /* of the next to start: the kernel will leave no mark */
};

void joiners_open(struct joiners *joiners);
void joiners_close(struct joiners *joiners);                    /* kills and reaps who is left */
void joiners_start(struct joiners *joiners, int slot, const struct join_request *request);
/* The same, and it is killed `dies_ns` after it began to join, wherever it is then; joiners_reap
 * waits for that. */
void joiners_start_mortal(struct joiners *joiners, int slot, const struct join_request *request,
                          uint64_t dies_ns);
/* until it has reported; NULL: it died or patience ran out */
struct joiners_report *joiners_wait(struct joiners *joiners, int slot);
void joiners_let_go(struct joiners *joiners);           /* all leave in good order and are reaped */
void joiners_kill(struct joiners *joiners, int slot);               /* SIGKILL and reaped */
/* waits for its end; status as waitpid gives it */
int  joiners_reap(struct joiners *joiners, int slot);

/* Waits until this rank sits in the arena of the child in `slot`, and is counted there, looked at
 * from outside. false: it ended, or patience ran out. */
bool joiners_sits(struct joiners *joiners, int slot, int rank);

/* A request for a job of `size` ranks under a name of its own. */
struct join_request joiners_request(const char *name, int rank, int size);
const char *joiners_name(char room[96], const char *what);    /* no other test or process has it */
int joiners_prove(int normal, int proving);         /* how often: the second in ./bootstrap prove */

#endif
