/* Job: one reader per kind of launcher: what its variables say about this rank.
 * Owns: nothing.
 * Never: decides which launcher wins, or what too few local ranks mean (environment.c). */
#ifndef TUTTI_GROUP_LAUNCHER_H
#define TUTTI_GROUP_LAUNCHER_H

#include "base/text.h"

#include <sys/types.h>

/* Where readers look; tests have their own. ancestor: as process_ancestor. */
struct launcher_ways {
    const char *(*lookup)(const char *name, void *arg);
    void *arg;
    int (*ancestor)(const char *name, pid_t *pid, uint64_t *start);
};

/* parts of a job's name; bytes of a part: a longer one ends in its hash */
enum { LAUNCHER_PARTS = 8, LAUNCHER_PART = 120 };

struct launched {
    const char *launcher;
    int rank, size;
    int local_rank, local_size;       /* -1, 0: it does not say */
    const char *node;                 /* which of the job's hosts this is; NULL: it does not say */
    struct text job;                  /* parts joined by dots, in room */
    char room[LAUNCHER_PARTS * (LAUNCHER_PART + 1)];
};

/* 1: complete. 0: not this launcher. With a sentence in why: -ENODATA: one of a pair is missing;
 * -EINVAL: a variable is wrong. */
typedef int launcher_reader(struct launched *l, const struct launcher_ways *ways, struct text *why);
launcher_reader launcher_torch, launcher_openmpi, launcher_pmi, launcher_slurm;

/* NULL if unset or empty */
const char *launcher_get(const struct launcher_ways *ways, const char *name);
/* 1 and *value, 0 not set, -EINVAL with "RANK=x: expected an integer between 0 and 7". */
int launcher_int(const struct launcher_ways *ways, const char *name, int low, int high, int *value,
                 struct text *why);
/* Reads rank and size from the variables of these names. Returns as a reader. */
int launcher_pair(struct launched *l, const struct launcher_ways *ways, const char *rank,
                  const char *size, struct text *why);
/* Reads local rank and local size where they are set. 0 or -EINVAL. */
int launcher_local(struct launched *l, const struct launcher_ways *ways, const char *rank,
                   const char *size, struct text *why);
void launcher_begin(struct launched *l, const char *launcher);
void launcher_add(struct launched *l, const char *part);    /* to the job's name; NULL: nothing */
void launcher_add_variable(struct launched *l, const struct launcher_ways *ways, const char *name);

#endif
