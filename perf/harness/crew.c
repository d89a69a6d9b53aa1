/* Command and answer go through two futex words, so that a crew that is not being measured sleeps and costs nothing. Stamps of all
 * ranks are compared directly: the time stamp counter runs alike on all CPUs of a machine that has an invariant one. */
#include "harness/crew.h"

#include "harness/perform.h"
#include "os/cpu.h"
#include "os/futex.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

struct crew {
    struct stage *stage;
    size_t stage_bytes;
    pid_t pid;
    int ranks;
};

static _Noreturn void give_up(const char *what, const char *why)
{
    fprintf(stderr, "\nperf: %s: %s\n", what, why);
    exit(2);
}

static int crew_body(tutti_comm *world, void *arg)
{
    struct stage *s = arg;
    struct rank r = { .me = tutti_rank(world), .size = tutti_size(world), .crowded = s->crowded, .comm = world, .bare = &s->bare,
                      .shared = s->shared, .room = s->pool };
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (!s->crowded && cpu_bind(r.me) < 0)
        return 1;
    if (s->pool) {
        r.sends = mmap(NULL, 2 * s->pool, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        if (r.sends == MAP_FAILED)
            return 1;
        r.recvs = r.sends + s->pool;
    }
    for (uint32_t nth = 1;; nth++) {
        fetch_add32(&s->ready, 1);
        futex_wake(&s->ready, INT_MAX);
        for (uint32_t go; (go = load_acquire32(&s->go)) < nth;)
            futex_wait(&s->go, go, 1000000000);
        if (s->task.form == FORM_END)
            return 0;
        int error = perform(s, &r);
        if (error < 0) {
            fprintf(stderr, "\nperf: rank %d, %s: %s\n%s\n", r.me, s->contenders[s->task.contender].name, tutti_strerror(error),
                    tutti_explain(world));
            return 1;
        }
    }
}

/* Until all ranks have said ready for the nth time, or the crew has ended. */
static void crew_await(struct crew *c, uint32_t nth)
{
    uint32_t want = nth * (uint32_t)c->ranks, have;
    while ((have = load_acquire32(&c->stage->ready)) < want) {
        futex_wait(&c->stage->ready, have, 200000000);
        if (waitpid(c->pid, NULL, WNOHANG) == c->pid)
            give_up("the ranks", "ended before their time");
    }
}

struct crew *crew_start(int ranks, const char *rules, const struct contender *contenders, size_t shared_bytes, size_t pool_bytes)
{
    struct crew *c = calloc(1, sizeof *c);
    size_t head = (sizeof(struct stage) + 4095) / 4096 * 4096;
    if (!c)
        give_up("memory", strerror(errno));
    c->ranks = ranks;
    c->stage_bytes = head + shared_bytes;
    c->stage = mmap(NULL, c->stage_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (c->stage == MAP_FAILED)
        give_up("memory for the ranks to share", strerror(errno));
    struct stage *s = c->stage;
    s->size = ranks;
    s->crowded = ranks > cpu_allowed();
    s->contenders = contenders;
    s->shared = (char *)s + head;
    s->pool = pool_bytes;
    pthread_barrierattr_t attr;
    pthread_barrierattr_init(&attr);
    pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&s->bare.posix, &attr, (unsigned)ranks);
    fflush(NULL);
    c->pid = fork();
    if (c->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (rules)
            setenv("TUTTI_ALGORITHM", rules, 1);
        int failed = tutti_spawn(ranks, crew_body, s, NULL, NULL);
        if (failed < 0)
            fprintf(stderr, "\nperf: %s\n", tutti_explain(NULL));
        _exit(failed != 0);
    }
    if (c->pid < 0)
        give_up("fork", strerror(errno));
    crew_await(c, 1);
    return c;
}

static void crew_command(struct crew *c, const struct task *task)
{
    struct stage *s = c->stage;
    s->task = *task;
    store_release32(&s->go, load_acquire32(&s->go) + 1);
    futex_wake(&s->go, INT_MAX);
}

void crew_end(struct crew *c)
{
    struct task end = { .form = FORM_END };
    crew_command(c, &end);
    while (waitpid(c->pid, NULL, 0) < 0 && errno == EINTR) { }
    munmap(c->stage, c->stage_bytes);
    free(c);
}

/* The figure of sample i: from the first start to the last end. In a chain the start is the last end of the operation before. */
static double crew_figure(const struct crew *c, const struct task *task, int i, double *returned)
{
    uint64_t begin = UINT64_MAX, end = 0, late = 0, cpu = 0, before = 0;
    for (int r = 0; r < c->ranks; r++) {
        const struct sample *x = &c->stage->samples[r][i];
        if (!x->begin)
            return 0;
        if (task->form == FORM_LATE) {
            uint64_t burnt = c->stage->burnt[r][i];
            cpu = burnt != UINT64_MAX && burnt > cpu ? burnt : cpu;
            late = burnt == UINT64_MAX ? x->begin : late;
        }
        begin = x->begin < begin ? x->begin : begin;
        end = x->end > end ? x->end : end;
        if (task->form == FORM_CHAIN && i > 0) {
            uint64_t e = c->stage->samples[r][i - 1].end;
            before = e > before ? e : before;
        }
    }
    if (task->form == FORM_LATE) {
        *returned = stamp_ns(end - late);
        return (double)cpu;
    }
    if (task->form == FORM_CHAIN)
        return i > 0 && end > before ? stamp_ns(end - before) : 0;
    return stamp_ns(end - begin) / (double)task->times;
}

void crew_run(struct crew *c, const struct task *task, struct series *figures, struct series *returns)
{
    crew_command(c, task);
    crew_await(c, load_acquire32(&c->stage->go) + 1);
    for (int i = 0; i < task->samples; i++) {
        double returned = 0, figure = crew_figure(c, task, i, &returned);
        if (figure <= 0)
            continue;
        series_add(figures, figure);
        if (returns)
            series_add(returns, returned);
    }
}
