/* Ranks that each have a CPU start at a time agreed on, a window after all are ready: whoever leaves a barrier first would otherwise
 * be early, and its wait would count as the operation's. Ranks without a CPU of their own cannot spin until then; they pass a
 * barrier that yields, and the figure counts from the first that came out of it. */
#include "harness/perform.h"

#include <errno.h>
#include <time.h>

enum { WINDOW_NS = 2000 };

static void gate(struct stage *s, uint64_t nth)
{
    if (fetch_add64(&s->gate_count.word, 1) + 1 == nth * (uint64_t)s->size)
        store_release64(&s->gate_sense.word, nth);
    else
        bare_wait(&s->gate_sense.word, nth, s->crowded);
}

/* The stamp to count from; 0: this rank was too late for the window. */
static uint64_t align(struct stage *s, struct rank *r)
{
    static uint64_t nth;
    shared64 *start = &s->start[++nth & 1].word;
    if (s->crowded) {
        gate(s, nth);
        return stamp_now();
    }
    if (r->me == 0)
        store_release64(start, 0);
    gate(s, nth);
    uint64_t at = 0;
    if (r->me == 0)
        store_release64(start, at = stamp_now() + stamp_ticks(WINDOW_NS));
    while (!at)
        at = load_acquire64(start);
    if (stamp_now() >= at)
        return 0;
    while (stamp_now() < at) { }
    return at;
}

static uint64_t cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int late(struct stage *s, struct rank *r, const struct contender *c, int i)
{
    struct timespec pause = { .tv_nsec = LATE_MS * 1000000L };
    bool me = i % r->size == r->me;
    align(s, r);
    if (me)
        while (nanosleep(&pause, &pause) < 0 && errno == EINTR) { }
    uint64_t cpu = cpu_ns();
    s->samples[r->me][i].begin = stamp_now();
    int error = c->run(r, 1);
    s->samples[r->me][i].end = stamp_now();
    s->burnt[r->me][i] = me ? UINT64_MAX : cpu_ns() - cpu;
    return error;
}

static int chain(struct stage *s, struct rank *r, const struct contender *c)
{
    int error = 0;
    align(s, r);
    for (int i = 0; i < s->task.samples && error == 0; i++) {
        s->samples[r->me][i].begin = 1;
        error = c->run(r, 1);
        s->samples[r->me][i].end = stamp_now();
    }
    return error;
}

int perform(struct stage *s, struct rank *r)
{
    const struct task *t = &s->task;
    const struct contender *c = &s->contenders[t->contender];
    int error = 0;
    r->bytes = t->bytes;
    r->hot = t->hot;
    if (t->warm && c->prepare)
        c->prepare(r);
    if (t->warm)
        error = c->run(r, (uint64_t)t->warm);
    if (error == 0 && t->form == FORM_CHAIN)
        return chain(s, r, c);
    for (int i = 0; i < t->samples && error == 0; i++) {
        if (t->form == FORM_LATE) {
            error = late(s, r, c, i);
            continue;
        }
        if (c->prepare)
            c->prepare(r);
        struct sample *x = &s->samples[r->me][i];
        x->begin = align(s, r);
        error = c->run(r, t->times);
        x->end = stamp_now();
    }
    return error;
}
