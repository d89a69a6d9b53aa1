/* Job: print what was found: for a terminal of 80 columns, as Markdown, as CSV.
 * Owns: nothing.
 * Never: judges. */
#ifndef FAULTS_TABLE_H
#define FAULTS_TABLE_H

#include "faults/systems.h"

/* The different answers of one cell that was tried several times. */
enum { TRIES_MAX = 100, DIFFERENT_MAX = 4 };
struct tries {
    int all, different;
    struct {
        char words[600];
        int count;
        double ms[TRIES_MAX];
        enum answer answer;
    } of[DIFFERENT_MAX];
};

struct found {
    struct cell cells[SYSTEMS_MAX][FAULTS];
    struct outcome *outcomes;    /* [SYSTEMS_MAX][FAULTS], shared */
    bool wanted[SYSTEMS_MAX][FAULTS];
    struct tries tries[SYSTEMS_MAX][FAULTS];
    char versions[SYSTEMS_MAX][96];
    int repeat, ranks, limit_s, timeout_ms, grace_ms;
    char load[32];
};

static inline struct outcome *outcome_at(const struct found *f, int system, int fault)
{
    return &f->outcomes[system * FAULTS + fault];
}

/* Adds what came of one more try; at the end, makes of all tries one outcome: the most frequent
 * answer and its median time. */
void tries_add(struct tries *t, const struct outcome *o);
void tries_sum_up(const struct tries *t, struct outcome *o);

void table_terminal(const struct found *f, bool texts);
void table_markdown(const struct found *f);
void table_csv(const struct found *f);

#endif
