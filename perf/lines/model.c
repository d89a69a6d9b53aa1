/* A transaction is done at once in the order in which accesses come, and its time is worked out: a
 * line knows until when the transaction before keeps it. So a reader that is early gets what was
 * there, and one that comes while a write is under way waits for that. Nothing is random. */
#include "lines/model.h"

#include <stdlib.h>
#include <string.h>

enum { LINES = 1 << 18, SEQUENCE_MOST = 2048, LINE_BYTES = 64 };

/* A flag between two cores of a Zen 4 that share a last cache, and between two that do not:
 * perf/NOTES.md. */
const struct costs costs_usual = {
    .hit = 1, .near = 25, .far = 105, .queue = 5, .write_back = 50, .probe = 5, .pause = 10
};

struct line {
    uintptr_t key;
    uint64_t has[CORES_MOST / 64];         /* cores with a copy */
    int owner;                             /* the one whose copy is dirty; -1: memory is as good */
    double busy[DOMAINS_MOST];             /* until when it is kept: in a domain */
    double home_busy, written;             /* at its home; when the last write is done */
    struct path path;                      /* behind that write */
};

struct sequence { uintptr_t key[SEQUENCE_MOST]; int n; };

struct model {
    struct machine_model m;
    struct core core[CORES_MOST];
    double arrives[CORES_MOST];            /* the last line that was fetched ahead */
    struct sequence missed[CORES_MOST][3]; /* of this operation, of those of either parity */
    uint64_t operation[CORES_MOST];
    struct path all;
    struct line *lines;
};

struct model *model_open(const struct machine_model *m)
{
    struct model *model = m->cores <= CORES_MOST && m->cores <= m->domain * DOMAINS_MOST
        ? calloc(1, sizeof *model)
        : NULL;
    if (!model)
        return NULL;
    model->m = *m;
    model->lines = calloc(LINES, sizeof *model->lines);
    if (model->lines)
        return model;
    free(model);
    return NULL;
}

void model_close(struct model *model)
{
    free(model->lines);
    free(model);
}

struct core *model_core(struct model *model, int core) { return &model->core[core]; }
struct path model_transfers(const struct model *model) { return model->all; }

static struct line *line_by(struct model *model, uintptr_t key)
{
    for (uint64_t i = (key * UINT64_C(0x9e3779b97f4a7c15)) >> 46;; i = (i + 1) % LINES) {
        struct line *l = &model->lines[i];
        if (!l->key) {
            l->key = key;
            l->owner = -1;
        }
        if (l->key == key)
            return l;
    }
}

static uintptr_t key_of(const void *word) { return (uintptr_t)word / LINE_BYTES; }
static bool has(const struct line *l, int core) { return l->has[core / 64] >> (core % 64) & 1; }

/* Nobody has ever touched it: in a program that has run for a while it would be in the core's own
 * cache, as a record that comes round again. */
static bool untouched(const struct line *l)
{
    for (int i = 0; i < CORES_MOST / 64; i++)
        if (l->has[i])
            return false;
    return true;
}

static bool alone(const struct line *l, int core)
{
    for (int i = 0; i < CORES_MOST / 64; i++)
        if (l->has[i] != (i == core / 64 ? UINT64_C(1) << (core % 64) : 0))
            return false;
    return true;
}

/* How many other domains have copies; *near: whether another core of its own one has. */
static int elsewhere(const struct model *model, const struct line *l, int core, bool *near)
{
    int domains = 0, width = model->m.domain;
    *near = false;
    for (int d = 0; d * width < model->m.cores; d++) {
        bool any = false;
        for (int c = d * width; c < (d + 1) * width && c < model->m.cores && !any; c++)
            any = c != core && has(l, c);
        if (d == core / width)
            *near = any;
        else
            domains += any;
    }
    return domains;
}

static double later(double a, double b) { return a > b ? a : b; }

static void count(struct path *p, bool far)
{
    p->near += !far;
    p->far += far;
}

/* A copy for `core`, asked for at `at`; when it is there. */
static double fetch(struct model *model, struct line *l, int core, double at)
{
    const struct costs *c = &model->m.costs;
    bool near;
    int domain = core / model->m.domain;
    elsewhere(model, l, core, &near);
    /* a line whose write is under way is nowhere else */
    double *queue = near ? &l->busy[domain] : &l->home_busy,
           start = later(later(at, *queue), l->written), done = start + (near ? c->near : c->far);
    *queue = start + c->queue;
    if (!near && l->owner >= 0 && model->m.protocol == MESI) {
        done += c->write_back;
        *queue += c->write_back;
        l->owner = -1;
    }
    l->has[core / 64] |= UINT64_C(1) << (core % 64);
    count(&model->all, !near);
    return done;
}

/* What is missed after this line, last time, is asked for, too. */
static void fetch_ahead(struct model *model, int core, uintptr_t key, double at)
{
    const struct sequence *s = &model->missed[core][1 + (model->operation[core] & 1)];
    struct sequence *now = &model->missed[core][0];
    if (now->n < SEQUENCE_MOST)
        now->key[now->n++] = key;
    int i = 0;
    while (i < s->n && s->key[i] != key)
        i++;
    for (int k = 1; k < model->m.run_ahead && i + k < s->n; k++) {
        struct line *l = line_by(model, s->key[i + k]);
        if (has(l, core) || untouched(l))
            continue;
        if (now->n < SEQUENCE_MOST)
            now->key[now->n++] = s->key[i + k];
        double done = fetch(model, l, core, at + k * model->m.costs.hit);
        model->arrives[core] = later(model->arrives[core], done);
    }
}

void model_load(struct model *model, int core, const void *word)
{
    struct core *me = &model->core[core];
    struct line *l = line_by(model, key_of(word));
    if (has(l, core) || untouched(l)) {
        l->has[core / 64] |= UINT64_C(1) << (core % 64);
        me->now += model->m.costs.hit;
        return;
    }
    bool near;
    double at = me->now;
    elsewhere(model, l, core, &near);
    if (l->written > at)
        me->path = l->path;                /* it waits for a write that is under way */
    me->now = fetch(model, l, core, at);
    count(&me->path, !near);
    if (model->m.run_ahead > 1) {
        fetch_ahead(model, core, key_of(word), at);
        me->now = later(me->now, model->arrives[core]);
    }
}

void model_news(struct model *model, int core, const void *word)
{
    struct core *me = &model->core[core];
    const struct line *l = line_by(model, key_of(word));
    me->path = l->path;
    count(&me->path, l->owner < 0 || l->owner / model->m.domain != core / model->m.domain);
}

/* The line for `core` alone; when it is there. */
static double take(struct model *model, int core, const void *word)
{
    const struct costs *c = &model->m.costs;
    struct core *me = &model->core[core];
    struct line *l = line_by(model, key_of(word));
    double start = me->now, done = start + c->hit;
    if (untouched(l))
        l->has[core / 64] = UINT64_C(1) << (core % 64);
    if (!alone(l, core)) {
        bool near;
        int far = elsewhere(model, l, core, &near);
        bool away = far > 0;
        double waits = later(l->home_busy, l->written);
        for (int d = 0; d < DOMAINS_MOST; d++)
            waits = later(waits, l->busy[d]);
        start = later(start, waits);
        done = start + (away ? c->far : c->near) + (far > 1 ? (far - 1) * c->probe : 0);
        count(&model->all, away);
        if (start > me->now)
            me->path = l->path;            /* it has waited for another one's write */
        count(&me->path, away);
        memset(l->has, 0, sizeof l->has);
        l->has[core / 64] = UINT64_C(1) << (core % 64);
        l->home_busy = done;
    }
    l->owner = core;
    l->written = later(l->written, done);
    l->path = me->path;
    me->stored = later(me->stored, done);
    return done;
}

void model_store(struct model *model, int core, const void *word)
{
    struct path before = model->core[core].path;
    take(model, core, word);
    model->core[core].path = before;       /* it does not wait for its stores, until a fence */
    model->core[core].now += model->m.costs.hit;
}

void model_change(struct model *model, int core, const void *word)
{
    struct core *me = &model->core[core];
    model_fence(model, core);
    me->now = take(model, core, word);
}

void model_fence(struct model *model, int core)
{
    struct core *me = &model->core[core];
    me->now = later(me->now, me->stored);
}

void model_own(struct model *model, int core, const void *word)
{
    struct core was = model->core[core];
    take(model, core, word);
    model->core[core] = was;
    model->core[core].now += model->m.costs.hit;
}

void model_pause(struct model *model, int core)
{
    model->core[core].now += model->m.costs.pause;
}

void model_operation(struct model *model, int core)
{
    struct sequence *s = model->missed[core];
    uint64_t nth = model->operation[core]++;
    s[1 + (nth & 1)] = s[0];
    s[0].n = 0;
}
