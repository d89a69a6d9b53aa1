/* Job: declare what the parts of `tutti doctor --tune` use of each other: what is compared, the
 *      results, the rules that follow.
 * Owns: nothing.
 * Never: makes rules that a measurement does not support. The built-in ones stay if nothing is
 *        clearly better. */
#ifndef TUTTI_CLI_DOCTOR_TUNE_H
#define TUTTI_CLI_DOCTOR_TUNE_H

#include "cli/doctor_say.h"

#include "base/text.h"
#include "watch/fingerprint.h"

enum {
    TUNE_KINDS = 10,
    TUNE_PAIRS = 2,
    TUNE_SIZES = 7,
    TUNE_PASSES = 2,
    TUNE_ROUNDS = 22,
    TUNE_TEAMS = 3,
    TUNE_CHANGES = TUNE_KINDS * TUNE_PAIRS * 2
};

/* Two algorithms that are neighbours, for smaller and for larger contributions: inline and eager,
   eager and pipelined. sizes: where they are compared, ascending, 0 after the last. below: up to
   this size another algorithm comes before the smaller one. */
struct tune_pair { const char *small, *large; size_t sizes[TUNE_SIZES + 1], below; };
extern const struct tune_pair tune_pairs[TUNE_PAIRS];
extern const enum kind tune_kinds[TUNE_KINDS];

/* In each round both algorithms took turns. Each of two passes has the same number of rounds. ratio
 * is the time of `large` divided by that of `small`. rounds 0: not compared. */
struct tune_cell { int rounds; double ratio[TUNE_ROUNDS]; };
struct tune_team {
    int ranks;
    bool crowded;
    struct tune_cell cell[TUNE_KINDS][TUNE_PAIRS][TUNE_SIZES];
};

/* from, to: the bytes of a rank's contribution that get another algorithm than the built-in one.
   gain, low, high: how much faster it is, the median of the rounds and their middle half, where the
   gain is largest: at `at` bytes with `ranks` ranks. */
struct tune_change {
    enum kind kind;
    bool crowded;
    size_t from, to, at;
    const char *name, *instead;
    double gain, low, high;
    int ranks;
};

/* doctor_cross.c, without side effects. The changes by which n teams have been faster than with
   `rules`, the built-in ones: their number. And the text of the rules for them, as far as there is
   room. */
struct rules;
int tune_decide(const struct rules *rules, const struct tune_team *teams, int n,
                struct tune_change changes[TUNE_CHANGES]);
void tune_write_rules(const struct tune_change *changes, int n, struct text *rules);

/* doctor_measure.c: compares everything with team->ranks ranks until clock_ns is ends_ns. If stderr
   is a terminal, it shows a bar that moves from `done` by `share`. 0, or negative with the reason
   in why. `team` is memory that is shared with children. */
struct tune_effort { uint64_t ends_ns; double done, share; };
int tune_measure(struct tune_team *team, const struct tune_effort *effort, struct text *why);

/* doctor_tune.c: the exit status. */
int doctor_tune(int seconds, bool dry);

#endif
