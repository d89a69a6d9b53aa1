/* explore same NAME: searches a scenario twice, once whole and once without what is known to come
 * to the same (seen.c, and which deaths and stops are worth a schedule: engine.c), and compares all
 * states in which runs end: results, reports, who died, all that each actor has learned in its
 * order, which store each word is of. What leaves schedules out must leave none of these out. */
#include "explore/engine.h"

#include <string.h>

enum { OUTCOMES = 1 << 20 };

static uint64_t outcome[2][OUTCOMES];
static int into = -1;
static size_t found[2];

static bool put_in(uint64_t *set, uint64_t key)
{
    size_t i = key % OUTCOMES;
    while (set[i] && set[i] != key)
        i = (i + 1) % OUTCOMES;
    if (set[i])
        return false;
    set[i] = key;
    return true;
}

void same_outcome(void)
{
    if (into < 0)
        return;
    uint64_t h = 1;
    for (int p = 0; p < EXPLORE_RANKS; p++) {
        const struct note *n = &note[p];
        uint64_t failed = 0;
        for (int i = 0; i < n->failed_count; i++)
            failed |= UINT64_C(1) << n->failed[i];
        for (int k = 0; k < NOTES; k++)
            h = seen_mix(h, n->there[k] ? (uint64_t)(int64_t)n->result[k] : 1);
        h = seen_mix(seen_mix(seen_mix(h, failed), n->verdict), explore_killed[p]);
    }
    for (int i = 0; i < 16; i++)
        h = seen_mix(h, explore_shared[i]);
    for (int i = 0; i < engine.actors; i++)
        h = seen_mix(h, engine.actor[i].heard);
    h = seen_mix(h, seen_words());
    if (found[into] < OUTCOMES / 2)
        found[into] += put_in(outcome[into], h | 1);
}

void same_into(int which) { into = which; }

/* All is searched anew: what was found with fewer shared words known does not count. */
void same_again(void)
{
    if (into < 0)
        return;
    memset(outcome[into], 0, sizeof outcome[into]);
    found[into] = 0;
}

size_t same_found(int which) { return found[which]; }

/* Of the first, not in the second. */
size_t same_missing(void)
{
    size_t missing = 0;
    for (size_t i = 0; i < OUTCOMES; i++) {
        size_t k = outcome[0][i] % OUTCOMES;
        while (outcome[1][k] && outcome[1][k] != outcome[0][i])
            k = (k + 1) % OUTCOMES;
        missing += outcome[0][i] && !outcome[1][k];
    }
    return missing;
}
