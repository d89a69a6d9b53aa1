/* Job: what the parts of `tutti doctor --tune` say to each other: what is compared, what came of
 *      it, what follows.
 * Owns: nothing.
 * Never: rules that a measurement does not bear out; the built-in ones stay where nothing is
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

/* Of each pair of neighbours, the one for smaller contributions and the one for larger: line and
   eager, eager and pipeline; the sizes at which they are compared, ascending, 0 behind the last;
   and up to which size even the first has another below it. */
struct tune_pair { const char *small, *large; size_t sizes[TUNE_SIZES + 1], below; };
extern const struct tune_pair tune_pairs[TUNE_PAIRS];
extern const enum kind tune_kinds[TUNE_KINDS];

/* In each round, the same number in each of two passes over everything, both took turns: ratio is
 * the time of `large` by that of `small`. rounds 0: not compared. */
struct tune_cell { int rounds; double ratio[TUNE_ROUNDS]; };
struct tune_team {
    int ranks;
    bool crowded;
    struct tune_cell cell[TUNE_KINDS][TUNE_PAIRS][TUNE_SIZES];
};

/* From, to: bytes of a rank's contribution that go another way than the built-in one; gain, low,
   high: how much faster, the median of the rounds and their middle half, where it is most, at `at`
   bytes with so many ranks. */
struct tune_change {
    enum kind kind;
    bool crowded;
    size_t from, to, at;
    const char *name, *instead;
    double gain, low, high;
    int ranks;
};

/* doctor_cross.c: pure. What n teams have shown to be better than `rules`, the built-in ones: how
   many changes. And the rules that they are: those for which there is room. */
struct rules;
int tune_decide(const struct rules *rules, const struct tune_team *teams, int n,
                struct tune_change changes[TUNE_CHANGES]);
void tune_write_rules(const struct tune_change *changes, int n, struct text *rules);

/* doctor_measure.c: compares everything with so many ranks until clock_ns is ends_ns; a bar on
   stderr, if that is a terminal, that goes from `done` by `share`. 0, or negative with the reason
   in why. `team` is memory that is shared with children. */
struct tune_effort { uint64_t ends_ns; double done, share; };
int tune_measure(struct tune_team *team, const struct tune_effort *effort, struct text *why);

/* doctor_tune.c: the exit status. */
int doctor_tune(int seconds, bool dry);

#endif
