/* Ranks that each have a CPU start at a time agreed on, a window after all are ready: whoever
 * leaves a barrier first would otherwise be early, and its wait would count as the operation's.
 * Ranks without a CPU of their own cannot spin until then; they pass a barrier that yields, and the
 * figure counts from the first that came out of it. */
#include "harness/run_task.h"

#include "os/futex.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

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
    uint64_t nth = ++r->aligned;
    shared64 *start = &s->start[nth & 1].word;
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

/* Of all threads of the rank, also those that its system has beside it. */
static uint64_t cpu_ns(const struct rank *r)
{
    struct timespec t;
    bool threads = r->system && r->system->threads;
    clock_gettime(threads ? CLOCK_THREAD_CPUTIME_ID : CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

struct coming { struct stage *stage; struct sample *sample; };

static void come(struct rank *r)
{
    const struct coming *coming = r->coming;
    int ms = coming->stage->task.late_ms ? coming->stage->task.late_ms : LATE_MS;
    struct timespec pause = { .tv_nsec = ms * 1000000L };
    align(coming->stage, r);
    while (nanosleep(&pause, &pause) < 0 && errno == EINTR) { }
    coming->sample->begin = stamp_now();
}

static int late(struct stage *s, struct rank *r, const struct contender *c, int i)
{
    struct sample *x = &s->samples[r->me][i];
    struct coming coming = { s, x };
    r->late = s->task.late == LATE_FIRST ? 0 : i % r->size;
    r->come = come;
    r->coming = &coming;
    bool me = r->late == r->me;
    if (!me)
        align(s, r);
    else if (s->task.late != LATE_HOLDS)
        come(r);
    uint64_t cpu = cpu_ns(r);
    if (!me)
        x->begin = stamp_now();
    int error = c->run(r, 1);
    x->end = stamp_now();
    s->burnt[r->me][i] = me ? UINT64_MAX : cpu_ns(r) - cpu;
    return error;
}

static int chain(struct stage *s, struct rank *r, const struct contender *c)
{
    int error = 0;
    uint64_t began = align(s, r);
    began = began ? began : stamp_now();
    for (int i = 0; i < s->task.samples && error == 0; i++) {
        s->samples[r->me][i].begin = began;
        error = c->run(r, 1);
        s->samples[r->me][i].end = stamp_now();
    }
    return error;
}

static int check(struct stage *s, struct rank *r, const struct contender *c)
{
    operation_fill(r);
    align(s, r);
    int error = c->run(r, 1);
    s->samples[r->me][0] = (struct sample){ 1, operation_wrong(r) };
    return error;
}

/* Everybody alike: on its own CPU, or, when crowded, on any of the job's. Two pairs that play
 * ping-pong on two CPUs take half as long again where the scheduler has put three of the four on
 * one of them, and it leaves them there: so partners are neighbours. */
static void stay(const struct stage *s, struct rank *r)
{
    bool bound = !s->crowded || r->op == OP_PINGPONG;
    cpu_set_t where;
    if (r->placed && r->bound == bound)
        return;
    CPU_ZERO(&where);
    for (size_t cpu = 0; cpu < CPU_SETSIZE && !bound; cpu++)
        if (s->mask[cpu / 64] >> (cpu % 64) & 1)
            CPU_SET(cpu, &where);
    if (bound)
        CPU_SET((size_t)s->cpu[r->me], &where);
    /* where it may not, it runs where its launcher has put it */
    sched_setaffinity(0, sizeof where, &where);
    r->placed = true;
    r->bound = bound;
}

int run_task(struct stage *s, struct rank *r, const struct contender *contenders)
{
    const struct task *t = &s->task;
    const struct contender *c = &contenders[t->contender];
    int error = 0;
    r->bytes = t->bytes;
    r->hot = t->hot;
    r->op = t->op;
    r->work = t->work;
    stay(s, r);
    if (t->form == FORM_CHECK)
        return check(s, r, c);
    if ((t->warm || t->form == FORM_FIRST) && c->prepare)
        c->prepare(r);
    if (t->warm)
        error = c->run(r, (uint64_t)t->warm);
    if (error == 0 && (t->form == FORM_CHAIN || t->form == FORM_FIRST))
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
        /* Who is through would else prepare the next one while a rank of its CPU waits for it. */
        if (s->crowded && c->prepare)
            align(s, r);
    }
    return error;
}

int run_tasks(struct stage *s, struct rank *r, const struct contender *contenders)
{
    stay(s, r);
    if (r->me == 0 && r->system)
        for (int op = 0; op < OPS; op++) {
            s->can[0] |= (uint64_t)(r->system->run[op] != NULL) << op;
            s->can[1] |= (uint64_t)(r->system->start[op] != NULL) << op;
        }
    for (uint32_t nth = 1;; nth++) {
        fetch_add32(&s->ready, 1);
        futex_wake(&s->ready, INT_MAX);
        for (uint32_t go; (go = load_acquire32(&s->go)) < nth;)
            if (futex_wait(&s->go, go, 1000000000) == -ETIMEDOUT && kill(s->commander, 0) < 0
                && errno == ESRCH)
                _exit(1);
        if (s->task.form == FORM_END)
            return 0;
        int error = run_task(s, r, contenders);
        if (error < 0)
            return error;
    }
}
