/* Job: print what was found: for a terminal of 80 columns, as Markdown, as CSV.
 * Owns: nothing.
 * Never: judges. */
#ifndef FAULTS_TABLE_H
#define FAULTS_TABLE_H

#include "faults/systems.h"

struct found {
    struct cell cells[SYSTEMS_MAX][FAULTS];
    struct outcome *outcomes;    /* [SYSTEMS_MAX][FAULTS], shared */
    bool wanted[SYSTEMS_MAX][FAULTS];
    char versions[SYSTEMS_MAX][96];
    int ranks, limit_s, timeout_ms, grace_ms;
    char load[32];
};

static inline struct outcome *outcome_at(const struct found *f, int system, int fault) { return &f->outcomes[system * FAULTS + fault]; }

void table_terminal(const struct found *f, bool texts);
void table_markdown(const struct found *f);
void table_csv(const struct found *f);

#endif
