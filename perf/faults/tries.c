/* Where ranks race for who notices first, a system may answer one fault in several ways: all are
 * shown, with how often each came. */
#include "faults/table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void tries_add(struct tries *t, const struct outcome *o)
{
    int i = 0;
    while (i < t->different && strcmp(t->of[i].words, o->words))
        i++;
    if (i == DIFFERENT_MAX || t->all == TRIES_MAX)
        i = DIFFERENT_MAX - 1;
    if (i == t->different) {
        snprintf(t->of[i].words, sizeof t->of[i].words, "%s", o->words);
        t->of[i].answer = o->answer;
        t->different++;
    }
    if (t->of[i].count < TRIES_MAX)
        t->of[i].ms[t->of[i].count++] = o->ms;
    t->all++;
}

static int by_value(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

void tries_sum_up(const struct tries *t, struct outcome *o)
{
    double ms[TRIES_MAX];
    bool told[DIFFERENT_MAX] = { false };
    size_t n = 0;
    int first = 0;
    for (int i = 1; i < t->different; i++)
        first = t->of[i].count > t->of[first].count ? i : first;
    if (t->all < 2 || !t->different)
        return;
    memcpy(ms, t->of[first].ms, sizeof ms);
    qsort(ms, (size_t)t->of[first].count, sizeof *ms, by_value);
    o->ms = ms[t->of[first].count / 2];
    o->words[0] = 0;
    for (int k = 0; k < t->different && n < sizeof o->words; k++) {
        int best = -1;
        for (int i = 0; i < t->different; i++)
            if (!told[i] && (best < 0 || t->of[i].count > t->of[best].count))
                best = i;
        told[best] = true;
        if (t->of[best].answer != o->answer)
            o->answer = MIXED;
        n += (size_t)snprintf(o->words + n, sizeof o->words - n, "%s%s", k ? ", or: " : "",
                              t->of[best].words);
        if (t->different > 1 && n < sizeof o->words)
            n += (size_t)snprintf(o->words + n, sizeof o->words - n, " (%d of %d tries)",
                                  t->of[best].count, t->all);
    }
}
