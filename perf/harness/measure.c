/* A machine that is shared, or warms up, changes its speed by tens of percent within seconds. What was measured within the same few
 * milliseconds still compares, so a figure is a ratio of two medians of the same round, and its spread that of the rounds. */
#include "harness/measure.h"

#include "harness/progress.h"
#include "os/cpu.h"

#include <string.h>

enum { BATCH_MOST_BYTES = 1024, BATCHES = 5, SINGLES_MOST = 256, ROUNDS_LEAST = 5, TIMES_MOST = 1 << 20 };

void team_open(struct team *t, int ranks, const struct contender *contenders, size_t shared_bytes, size_t pool_bytes)
{
    *t = (struct team){ .ranks = ranks, .contenders = contenders, .crowded = ranks > cpu_allowed() };
    for (const struct contender *c = contenders; c->name; c++, t->count++) {
        int i = 0;
        while (i < t->settings && t->rules[i] != c->rules && (!t->rules[i] || !c->rules || strcmp(t->rules[i], c->rules)))
            i++;
        if (i == t->settings && i < SETTINGS_MAX)
            t->rules[t->settings++] = c->rules;
    }
    for (int i = 0; i < t->settings; i++)
        t->crews[i] = crew_start(ranks, t->rules[i], contenders, shared_bytes, pool_bytes);
}

void team_close(struct team *t)
{
    for (int i = 0; i < t->settings; i++)
        crew_end(t->crews[i]);
}

static struct crew *team_crew(const struct team *t, int contender)
{
    const char *rules = t->contenders[contender].rules;
    for (int i = 0; i < t->settings; i++)
        if (t->rules[i] == rules || (t->rules[i] && rules && !strcmp(t->rules[i], rules)))
            return t->crews[i];
    return t->crews[0];
}

static bool takes_part(const struct team *t, int contender, size_t bytes)
{
    const struct contender *c = &t->contenders[contender];
    return (!c->ranks || c->ranks == t->ranks) && !(c->uncrowded && t->crowded) && bytes >= c->least && (!c->most || bytes <= c->most);
}

static double run(struct team *t, const struct effort *e, int contender, enum form form, int samples, uint64_t times, struct series *to)
{
    struct task task = { form, contender, samples, (uint64_t)samples * times < 8 ? 1 : 4, times, e->bytes, e->hot };
    struct series got = { 0 };
    /* On a busy machine all ranks may have missed their windows. */
    for (int tries = 0; tries < 20 && got.n == 0; tries++)
        crew_run(team_crew(t, contender), &task, &got, NULL);
    double median = series_median(&got);
    for (size_t i = 0; to && i < got.n; i++)
        series_add(to, got.at[i]);
    series_free(&got);
    return median;
}

static double limit(double x, double low, double high) { return x < low ? low : x > high ? high : x; }

/* How long one operation takes, roughly, and with it how many make a batch. */
static double rough(struct team *t, const struct effort *e, int contender, double target)
{
    uint64_t times = 1;
    double ns = 0;
    for (int i = 0; i < 12; i++) {
        ns = run(t, e, contender, FORM_BATCH, 1, times, NULL);
        if (ns * (double)times > target / 4 || times * 4 > TIMES_MOST)
            break;
        times *= 4;
    }
    return ns > 1 ? ns : 1;
}

void measure(struct team *t, const struct effort *e, struct measured *results)
{
    bool small = e->bytes <= BATCH_MOST_BYTES, chain = t->crowded && e->bytes == 0;
    double target = (t->crowded ? 3e6 : 3e5) / (e->quick ? 5 : 1), ns[CONTENDERS_MAX];
    for (int i = 0; i < t->count; i++) {
        results[i].in = takes_part(t, i, e->bytes);
        if (!results[i].in)
            continue;
        ns[i] = rough(t, e, i, target);
        results[i].times = (uint64_t)limit(target / ns[i], 1, TIMES_MOST);
    }
    double began = stamp_seconds(), budget = e->quick ? 0.05 : e->seconds;
    int least = e->quick ? 2 : ROUNDS_LEAST;
    for (int round = 0; round < least || stamp_seconds() - began < budget; round++) {
        for (int k = 0; k < t->count; k++) {
            int i = round & 1 ? t->count - 1 - k : k;
            if (!results[i].in)
                continue;
            double share = (stamp_seconds() - began) / budget;
            progress_show(e->done + e->share * (share < 1 ? share : 1), "%d ranks: %s", t->ranks, t->contenders[i].name);
            int singles = (int)limit((t->crowded ? 1e7 : 2e6) / ns[i], 1, SINGLES_MOST) + chain;
            double median = small ? run(t, e, i, FORM_BATCH, BATCHES, results[i].times, NULL) : 0;
            double single = run(t, e, i, chain ? FORM_CHAIN : FORM_SINGLE, singles, 1, &results[i].single);
            series_add(&results[i].rounds, small ? median : single);
        }
    }
}

void measured_free(struct measured *results, int count)
{
    for (int i = 0; i < count; i++) {
        series_free(&results[i].rounds);
        series_free(&results[i].single);
        results[i] = (struct measured){ 0 };
    }
}
