/* Job: the faults, as the ranks play them: one text for all systems, so that all are tried by the
 *      same program.
 * Owns: nothing.
 * Never: knows a system: it is handed three calls. */
#ifndef FAULTS_SCENARIO_H
#define FAULTS_SCENARIO_H

#include "faults/page.h"

#ifdef __cplusplus
extern "C" {
#endif

enum element { ELEMENT_FLOAT, ELEMENT_DOUBLE };

/* A system's calls. 0, or -1 with *why filled in. comm 0: all ranks; 1 and 2: others of all ranks,
 * there if the fault is CYCLE. */
struct peer {
    void (*deadline)(int ms);    /* of all calls to come; NULL: there are no deadlines */
    int (*barrier)(int comm, struct failure *why);
    /* sum, in place */
    int (*all_reduce)(void *data, size_t count, enum element, struct failure *why);
    int (*broadcast)(float *data, size_t count, int root, struct failure *why);
};

/* Plays page->fault as rank `me`. Does not return: it ends the process when the driver has seen
   enough, or, after an error that not all the others have, as a program that gives up would. */
void scenario_play(struct page *page, int me, const struct peer *peer);

/* A system that could not even start. */
void scenario_unable(struct page *page, int me, const char *kind, const char *text);

#ifdef __cplusplus
}
#endif
#endif
