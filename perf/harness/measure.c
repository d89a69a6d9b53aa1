/* A machine that is shared, or warms up, changes its speed by tens of percent within seconds. What
 * was measured within the same few milliseconds still compares, so a figure is a ratio of two
 * medians of the same round, and its spread that of the rounds. */
#include "harness/measure.h"

#include "harness/foreign.h"
#include "harness/limit.h"
#include "harness/progress.h"
#include "os/cpu.h"

#include <stdio.h>
#include <string.h>

enum {
    BATCH_MOST_BYTES = 1024,
    BATCHES = 5,
    SINGLES_MOST = 256,
    ROUNDS_LEAST = 5,
    TIMES_MOST = 1 << 20,
    CHECK_LATE_MS = 3,
    SLOW_NS = 2000000,
    LARGE = 64 << 20
};
/* Before a contender is measured at a size: memory that it touches, and what it learns, belong
 * to `first`. */
enum { WARM_NS = 60000000, WARM_AGAIN_NS = 15000000, WARM_LEAST_NS = 4000000 };
enum { WARM_MOST = 1 << 15 };

static const struct setting plain;

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && !strcmp(a, b));
}

static int setting_of(const struct team *t, int contender)
{
    const struct setting *want = t->contenders[contender].setting ? t->contenders[contender].setting
                                                                  : &plain;
    int i = 0;
    while (i < t->settings
           && !(same_text(t->setting[i].rules, want->rules)
                && same_text(t->setting[i].system, want->system)
                && t->setting[i].arena == want->arena))
        i++;
    return i;
}

void team_open(struct team *t, const struct team_plan *plan)
{
    *t = (struct team){
        .ranks = plan->ranks, .contenders = plan->contenders, .crowded = plan->ranks > cpu_allowed()
    };
    for (const struct contender *c = t->contenders; c->name; c++, t->count++)
        if (setting_of(t, t->count) == t->settings && t->settings < SETTINGS_MAX)
            t->setting[t->settings++] = c->setting ? *c->setting : plain;
    for (int i = 0; i < t->settings; i++) {
        struct job_plan job = {
            plan->ranks, t->setting[i], t->contenders, plan->system,
            plan->shared_bytes, plan->pool_bytes
        };
        const char *system = t->setting[i].system;
        if (system && foreign_left_out(plan->without, system))
            continue;                                /* and no word of it */
        progress_show(plan->done, "%d ranks: %s starts", t->ranks,
                      system ? foreign_of(system)->title : "tutti");
        t->jobs[i] = job_start(&job, t->why[i], REASON_BYTES);
        if (t->jobs[i] && system)
            snprintf(t->about[i], REASON_BYTES, "%.60s: %.90s", job_version(t->jobs[i]),
                     foreign_of(system)->settings);
    }
}

void team_close(struct team *t)
{
    for (int i = 0; i < t->settings; i++)
        if (t->jobs[i])
            job_end(t->jobs[i]);
}

struct job *team_job(const struct team *t, int contender)
{
    return t->jobs[setting_of(t, contender)];
}

const char *team_about(const struct team *t, int contender)
{
    return t->about[setting_of(t, contender)];
}

/* Whether it is asked to take part, and if it is, whether it can. */
static bool takes_part(const struct team *t, int contender, const struct effort *e,
                       struct measured *m)
{
    const struct contender *c = &t->contenders[contender];
    const struct job *job = team_job(t, contender);
    if ((c->only != OP_NONE && c->only != e->op) || (c->ranks && c->ranks != t->ranks)
        || (c->uncrowded && t->crowded) || e->bytes < c->least || (c->most && e->bytes > c->most)
        || m->skip)
        return false;
    if (!job) {
        snprintf(m->why, sizeof m->why, "%s", t->why[setting_of(t, contender)]);
        return false;
    }
    m->lacks = (!c->run || c->run == operation_run) && !job_can(job, e->op, e->work);
    if (job_why(job)[0])
        snprintf(m->why, sizeof m->why, "%s", job_why(job));
    return !m->why[0] && !m->lacks;
}

bool measure_task(struct team *t, int contender, const struct task *task, struct series *figures,
                  struct series *returns, struct measured *m)
{
    struct job *job = team_job(t, contender);
    struct task its = *task;
    if (!job)
        snprintf(m->why, sizeof m->why, "%s", t->why[setting_of(t, contender)]);
    /* a peer's ranks have a table of their own */
    its.contender = t->setting[setting_of(t, contender)].system ? 0 : contender;
    m->in = job && job_run(job, &its, figures, returns);
    if (job && !m->in)
        snprintf(m->why, sizeof m->why, "%s", job_why(job));
    return m->in;
}

static double run(struct team *t, const struct effort *e, int contender, enum form form,
                  int samples, uint64_t times, struct series *to, struct measured *m)
{
    struct task task = {
        .form = form, .samples = samples, .warm = (uint64_t)samples * times < 8 ? 1 : 4,
        .times = times, .bytes = e->bytes, .hot = e->hot, .op = e->op, .work = e->work
    };
    struct series got = { 0 };
    /* On a busy machine all ranks may have missed their windows. */
    for (int tries = 0; tries < 20 && got.n == 0; tries++)
        if (!measure_task(t, contender, &task, &got, NULL, m))
            break;
    double median = series_median(&got);
    for (size_t i = 0; to && i < got.n; i++)
        series_add(to, got.at[i]);
    series_free(&got);
    return median;
}

static void check(struct team *t, const struct effort *e, int contender, struct measured *m)
{
    const struct contender *c = &t->contenders[contender];
    bool data = e->bytes && (!c->run || c->prepare == operation_rewrite);
    struct task task = {
        .form = data ? FORM_CHECK : FORM_LATE, .samples = data ? 1 : t->ranks < 4 ? t->ranks : 4,
        .warm = 1, .times = 1, .bytes = e->bytes, .hot = e->hot, .op = e->op, .work = e->work,
        .late_ms = CHECK_LATE_MS
    };
    struct series wrong = { 0 };
    if ((data || e->op == OP_BARRIER) && measure_task(t, contender, &task, &wrong, NULL, m)) {
        if (data && wrong.at[0] > 0)
            snprintf(m->why, sizeof m->why, "%s of %zu bytes gives %.0f wrong elements",
                     operations[e->op].name, e->bytes, wrong.at[0]);
        else if (!data && t->ranks > 1 && job_soonest(team_job(t, contender), &task) < 0)
            snprintf(m->why, sizeof m->why, "it let a rank through before the last had come");
        m->in = !m->why[0];
    }
    series_free(&wrong);
}

static double limit(double x, double low, double high)
{
    return x < low ? low : x > high ? high : x;
}

/* How long one operation takes, roughly, and with it how many make a batch. */
static double rough(struct team *t, const struct effort *e, int contender, double target,
                    struct measured *m)
{
    uint64_t times = 1;
    double ns = 0;
    for (int i = 0; i < 12; i++) {
        ns = run(t, e, contender, FORM_BATCH, 1, times, NULL, m);
        if (ns * (double)times > target / 4 || times * 4 > TIMES_MOST)
            break;
        times *= 4;
    }
    return ns > 1 ? ns : 1;
}

/* A third of a short time is for warming up, and who has been measured before needs little. */
static double warm_ns(const struct team *t, const struct effort *e, const struct measured *m)
{
    double most = limit_set() && m->rounds.n ? WARM_AGAIN_NS : WARM_NS,
           part = e->seconds * 1e9 / (3 * t->count);
    return limit_set() ? limit(part, WARM_LEAST_NS, most) : most;
}

/* In pieces: where something else comes between, operations take longer than was thought. */
static void warm_up(struct team *t, const struct effort *e, int contender, double ns,
                    struct measured *m)
{
    enum { PIECES = 16 };
    double all = warm_ns(t, e, m);
    uint64_t times = (uint64_t)limit(all / ns / PIECES, 0, WARM_MOST / PIECES);
    struct task task = {
        .form = FORM_BATCH, .samples = 1, .warm = 1, .times = times, .bytes = e->bytes,
        .hot = e->hot, .op = e->op, .work = e->work
    };
    struct series nobody = { 0 };
    double began = stamp_seconds();
    for (int i = 0; i < PIECES && times && !e->quick && stamp_seconds() - began < 4e-9 * all;
         i++)
        if (!measure_task(t, contender, &task, &nobody, NULL, m))
            break;
    series_free(&nobody);
}

/* Back to back, a broadcast's root would be many operations ahead of the others: that is not how
 * long one takes. */
static bool in_batches(const struct effort *e)
{
    return e->bytes <= BATCH_MOST_BYTES && (e->op == OP_NONE || operations[e->op].meets);
}

void measure_ready(struct team *t, const struct effort *e, struct measured *results)
{
    double target = (t->crowded ? 3e6 : 3e5) / (e->quick ? 5 : 1);
    for (int i = 0; i < t->count; i++) {
        struct measured *m = &results[i];
        m->why[0] = 0;
        m->in = takes_part(t, i, e, m);
        bool known = limit_set() && m->rounds.n;
        if (m->in && !known)
            check(t, e, i, m);
        if (!m->in)
            continue;
        if (!known)
            m->rough = rough(t, e, i, target, m);
        warm_up(t, e, i, m->rough, m);
        m->times = (uint64_t)limit(target / m->rough, 1, TIMES_MOST);
    }
}

double measure_turn(struct team *t, const struct effort *e, int contender, struct measured *m)
{
    bool small = in_batches(e), chain = t->crowded && e->bytes == 0;
    if (!m->in)
        return 0;
    int singles = (int)limit((t->crowded ? 1e7 : 2e6) / m->rough, 1, SINGLES_MOST) + chain;
    double median = small ? run(t, e, contender, FORM_BATCH, m->rough > SLOW_NS ? 1 : BATCHES,
                                m->times, NULL, m)
                          : 0;
    double single = m->in ? run(t, e, contender, chain ? FORM_CHAIN : FORM_SINGLE, singles, 1,
                                &m->single, m)
                          : 0;
    return small ? median : single;
}

void measure(struct team *t, const struct effort *e, struct measured *results)
{
    double called = stamp_seconds();
    measure_ready(t, e, results);
    double began = limit_set() ? called : stamp_seconds(), budget = e->quick ? 0.05 : e->seconds;
    int least = e->quick ? 2 : e->bytes > LARGE ? ROUNDS_LEAST - 2 : ROUNDS_LEAST;
    if (e->passes > 1)
        least = (least + e->passes - 1) / e->passes;
    if (limit_set())
        least = 1;
    for (int round = 0; round < least || stamp_seconds() - began < budget; round++) {
        for (int k = 0; k < t->count; k++) {
            int i = round & 1 ? t->count - 1 - k : k;
            if (!results[i].in || limit_left() <= 0)
                continue;
            double share = (stamp_seconds() - began) / budget;
            progress_show(e->done + e->share * (share < 1 ? share : 1), "%d ranks: %s", t->ranks,
                          t->contenders[i].name);
            series_add(&results[i].rounds, measure_turn(t, e, i, &results[i]));
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
