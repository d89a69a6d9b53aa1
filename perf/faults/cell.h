/* Job: do one fault to one system: start its ranks, strike, watch, and leave nothing behind.
 * Owns: a process of its own that is the last parent of all that the system starts, and a folder.
 * Never: compares. */
#ifndef FAULTS_CELL_H
#define FAULTS_CELL_H

#include "faults/verdict.h"

#include <sys/types.h>

struct peer_system {
    const char *key, *name;
    const char *program;         /* in the folder of rank programs */
    /* its words before "-n N program page"; none: the driver starts the ranks itself */
    const char *launcher[6];
    /* a variant of that system, tried on the faults of `only`; NULL: a system of its own */
    const char *of;
    unsigned only;               /* bit f: fault f */
    /* patient: its default deadline, also where others are asked for one */
    bool fatal, patient;
};

struct cell {
    const struct peer_system *system;
    enum fault fault;
    int ranks, timeout_ms, grace_ms, limit_ms;
    const char *programs;        /* folder of the rank programs */
};

/* Forks the process that does it; *o, which is shared memory, is filled in when that has ended. */
pid_t cell_start(const struct cell *cell, struct outcome *o);

#endif
