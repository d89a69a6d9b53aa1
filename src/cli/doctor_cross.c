/* Finds where one algorithm overtakes the next. A difference counts if nearly every round shows it
 * and its median is larger than the noise of a round. A threshold moves away from its built-in
 * place, over sizes that support the move or are undecided, and ends at the last one that supports
 * it. It stops at a size where teams contradict each other: rules can depend on crowded or not, and
 * on no other property of a team. Cost: a sort for each cell. */
#include "cli/doctor_tune.h"

#include "coll/select.h"

#include <stdlib.h>
#include <string.h>

const struct tune_pair tune_pairs[TUNE_PAIRS] = {
    { "inline", "eager", { 8, 40, 88 }, 0 },
    { "eager", "pipelined", { 512, 2048, 4096, 8192, 16384, 32768, 65536 }, 88 },
};

const enum kind tune_kinds[TUNE_KINDS] = {
    KIND_BROADCAST, KIND_REDUCE, KIND_ALL_REDUCE, KIND_REDUCE_SCATTER, KIND_ALL_GATHER,
    KIND_GATHER, KIND_SCATTER, KIND_ALL_TO_ALL, KIND_SCAN, KIND_EXSCAN,
};

/* FOR_LARGE: the algorithm for larger contributions is faster. */
enum verdict { FOR_SMALL = -1, UNDECIDED, FOR_LARGE, CONTRADICTION, NOT_MEASURED };

enum { ROUNDS_LEAST = TUNE_ROUNDS / TUNE_PASSES };
static const double clearly = 1.05;

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Quartile 0 … 4 of the rounds' ratios. */
static double quartile(const struct tune_cell *cell, int which)
{
    double sorted[TUNE_ROUNDS];
    memcpy(sorted, cell->ratio, sizeof sorted[0] * (size_t)cell->rounds);
    qsort(sorted, (size_t)cell->rounds, sizeof sorted[0], ascending);
    return sorted[(cell->rounds - 1) * which / 4];
}

/* One round of ten may differ. */
static enum verdict of_cell(const struct tune_cell *cell)
{
    int less = 0, more = 0;
    if (cell->rounds < ROUNDS_LEAST)
        return NOT_MEASURED;
    for (int i = 0; i < cell->rounds; i++) {
        less += cell->ratio[i] < 1;
        more += cell->ratio[i] > 1;
    }
    double median = quartile(cell, 2);
    int enough = cell->rounds - cell->rounds / 10;
    if (less >= enough && median * clearly < 1)
        return FOR_LARGE;
    return more >= enough && median > clearly ? FOR_SMALL : UNDECIDED;
}

static enum verdict of_teams(const struct tune_team *teams, int n, int k, bool crowded, int pair,
                             int size)
{
    enum verdict all = NOT_MEASURED;
    for (int t = 0; t < n; t++) {
        enum verdict one = teams[t].crowded == crowded ? of_cell(&teams[t].cell[k][pair][size])
                                                       : NOT_MEASURED;
        if (one == NOT_MEASURED || (one == UNDECIDED && all != NOT_MEASURED))
            continue;
        all = all == NOT_MEASURED || all == UNDECIDED || all == one ? one : CONTRADICTION;
    }
    return all;
}

/* Fills in the size and the team with the largest gain, of those that support the change. */
static void find_gain(const struct tune_team *teams, int n, int k, int pair, enum verdict wanted,
                      struct tune_change *c)
{
    for (int t = 0; t < n; t++)
        for (int i = 0; i < TUNE_SIZES && tune_pairs[pair].sizes[i]; i++) {
            const struct tune_cell *cell = &teams[t].cell[k][pair][i];
            size_t bytes = tune_pairs[pair].sizes[i];
            if (teams[t].crowded != c->crowded || bytes < c->from || bytes > c->to
                || of_cell(cell) != wanted)
                continue;
            bool large = wanted == FOR_LARGE;
            double gain = large ? 1 / quartile(cell, 2) : quartile(cell, 2);
            if (gain <= c->gain)
                continue;
            c->gain = gain;
            c->low = large ? 1 / quartile(cell, 3) : quartile(cell, 1);
            c->high = large ? 1 / quartile(cell, 1) : quartile(cell, 3);
            c->at = bytes;
            c->ranks = teams[t].ranks;
        }
}

/* The largest size for which the built-in rules choose `name`, the pair's first. SIZE_MAX: none. */
static size_t built_in(const struct rules *rules, enum kind kind, bool crowded, const char *name)
{
    for (int i = 0; i < rules->used[kind][crowded]; i++)
        if (!strcmp(rules->choices[i][kind][crowded].algorithm->name, name))
            return rules->choices[i][kind][crowded].high;
    return SIZE_MAX;
}

static bool cross(const struct tune_team *teams, int n, int k, bool crowded, int pair, size_t now,
                  struct tune_change *c)
{
    const struct tune_pair *p = &tune_pairs[pair];
    int sizes = 0, split = 0, best = -1;
    while (sizes < TUNE_SIZES && p->sizes[sizes])
        sizes++;
    while (split < sizes && p->sizes[split] <= now)
        split++;
    *c = (struct tune_change){ .kind = tune_kinds[k], .crowded = crowded };
    for (int i = split - 1; i >= 0; i--) {
        enum verdict v = of_teams(teams, n, k, crowded, pair, i);
        if (v != UNDECIDED && v != FOR_LARGE)
            break;
        best = v == FOR_LARGE ? i : best;
    }
    if (best >= 0) {
        c->from = (best ? p->sizes[best - 1] : p->below) + 1;
        c->to = now;
        c->name = p->large;
        c->instead = p->small;
        find_gain(teams, n, k, pair, FOR_LARGE, c);
        return true;
    }
    for (int i = split; i < sizes; i++) {
        enum verdict v = of_teams(teams, n, k, crowded, pair, i);
        if (v != UNDECIDED && v != FOR_SMALL)
            break;
        best = v == FOR_SMALL ? i : best;
    }
    if (best < 0)
        return false;
    c->from = now + 1;
    c->to = p->sizes[best];
    c->name = p->small;
    c->instead = p->large;
    find_gain(teams, n, k, pair, FOR_SMALL, c);
    return true;
}

int tune_decide(const struct rules *rules, const struct tune_team *teams, int n,
                struct tune_change changes[TUNE_CHANGES])
{
    int found = 0;
    for (int k = 0; k < TUNE_KINDS; k++)
        for (int crowded = 0; crowded < 2; crowded++)
            for (int pair = 0; pair < TUNE_PAIRS; pair++) {
                size_t now = built_in(rules, tune_kinds[k], crowded, tune_pairs[pair].small);
                if (now < SIZE_MAX)
                    found += cross(teams, n, k, crowded, pair, now, &changes[found]);
            }
    return found;
}

/* ---- the rules ------------------------------------------------------------------------------- */

static void add_choice(struct text *t, bool first, const struct tune_change *c, const char *name)
{
    text_add(t, "%s%zu-%zu=%s", first ? "" : ",", c->from, c->to, name);
}

/* A plain clause holds for crowded comms, too. So a clause for crowded comms has their own changes,
 * and puts back the plain ones that are not theirs. */
static void write_kind(const struct tune_change *changes, int n, enum kind kind, struct text *t)
{
    int plain = 0, own = 0;
    for (int i = 0; i < n; i++) {
        if (changes[i].kind != kind || changes[i].crowded)
            continue;
        if (!plain)
            text_add(t, "%s%s:", t->used ? ";" : "", kind_name(kind));
        add_choice(t, !plain++, &changes[i], changes[i].name);
    }
    for (int put_back = 0; put_back < 2; put_back++)
        for (int i = 0; i < n; i++) {
            if (changes[i].kind != kind || changes[i].crowded == put_back)
                continue;
            if (!own)
                text_add(t, "%s%s/crowded:", t->used ? ";" : "", kind_name(kind));
            add_choice(t, !own++, &changes[i], put_back ? changes[i].instead : changes[i].name);
        }
}

void tune_write_rules(const struct tune_change *changes, int n, struct text *rules)
{
    text_clear(rules);
    for (int k = 0; k < TUNE_KINDS; k++) {
        char room[600];
        struct text t = TEXT_IN(room);
        text_clear(&t);
        write_kind(changes, n, tune_kinds[k], &t);
        if (t.used && rules->used + 1 + t.used < rules->room)
            text_add(rules, "%s%s", rules->used ? ";" : "", room);
    }
}
