/* Command and answer go through two futex words, so that a job that is not being measured sleeps
 * and costs nothing. Stamps of all ranks are compared directly: the time stamp counter runs alike
 * on all CPUs of a machine that has an invariant one. */
#include "harness/job.h"

#include "harness/foreign.h"
#include "harness/limit.h"
#include "harness/run_task.h"
#include "os/cpu.h"
#include "os/futex.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* how long a peer may take; tutti's own jobs end by themselves */
enum { START_S = 60, ANSWER_S = 120, GOODBYE_S = 5, WHY_BYTES = 160 };

struct job {
    struct stage *stage;
    size_t stage_bytes;
    pid_t pid;
    int ranks, fd, log;                    /* log: what a peer said; -1 for tutti's own */
    uint64_t began;                        /* a stamp */
    bool lost;
    char why[WHY_BYTES];
};

static _Noreturn void give_up(const char *what, const char *why)
{
    fprintf(stderr, "\nperf: %s: %s\n", what, why);
    exit(2);
}

/* began: a stamp, before the ranks were forked */
struct tutti_job { struct stage *stage; const struct job_plan *plan; uint64_t began; };

static bool pools(struct rank *r, const struct setting *how)
{
    if (!r->room)
        return true;
    if (how->arena) {
        r->sends = tutti_alloc(r->room, r->comm);
        r->recvs = tutti_alloc(r->room, r->comm);
        return r->sends && r->recvs;
    }
    return operation_pools(r);
}

static int job_body(tutti_comm *world, void *arg)
{
    const struct tutti_job *job = arg;
    struct stage *s = job->stage;
    struct rank r = {
        .me = tutti_rank(world), .size = tutti_size(world), .crowded = s->crowded, .comm = world,
        .bare = &s->bare, .shared = (char *)s + s->shared_at, .room = s->pool,
        .system = job->plan->system
    };
    s->up[r.me] = stamp_now() - job->began;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (!pools(&r, &job->plan->setting)) {
        fprintf(stderr, "\nperf: no memory for buffers of %zu bytes; %s\n", r.room,
                tutti_explain(world));
        return 1;
    }
    int error = run_tasks(s, &r, job->plan->contenders);
    if (error < 0)
        fprintf(stderr, "\nperf: rank %d, %s %s: %s\n%s\n", r.me,
                job->plan->contenders[s->task.contender].name, operations[r.op].name,
                tutti_strerror(error), tutti_explain(world));
    return error != 0;
}

static void job_tutti(struct job *c, const struct job_plan *plan)
{
    fflush(NULL);
    c->pid = fork();
    if (c->pid == 0) {
        struct tutti_job job = { c->stage, plan, stamp_now() };
        size_t span = plan->setting.arena ? 2 * plan->pool_bytes + ((size_t)1 << 30) : 0;
        tutti_options options = { .span_bytes = span };
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (plan->setting.rules)
            setenv("TUTTI_ALGORITHM", plan->setting.rules, 1);
        int failed = tutti_spawn(plan->ranks, job_body, &job, span ? &options : NULL, NULL);
        if (failed < 0)
            fprintf(stderr, "\nperf: %s\n", tutti_explain(NULL));
        _exit(failed != 0);
    }
    if (c->pid < 0)
        give_up("fork", strerror(errno));
}

/* The first line of what a peer said that has words in it. */
static void job_said(const struct job *c, char *to, size_t room)
{
    char text[4096];
    ssize_t n = pread(c->log, text, sizeof text - 1, 0);
    text[n > 0 ? n : 0] = 0;
    for (char *rest = NULL, *line = strtok_r(text, "\n", &rest); line;
         line = strtok_r(NULL, "\n", &rest)) {
        while (*line && !isalpha((unsigned char)*line))
            line++;
        if (*line) {
            snprintf(to, room, "%s", line);
            return;
        }
    }
}

/* Until all ranks have said ready for the nth time. false: a peer's job has ended, or the
 * time is over. */
static bool job_await(struct job *c, uint32_t nth, double limit)
{
    uint32_t want = nth * (uint32_t)c->ranks, have;
    limit = limit_patience(limit);
    double until = stamp_seconds() + limit;
    while ((have = load_acquire32(&c->stage->ready)) < want) {
        futex_wait(&c->stage->ready, have, 200000000);
        bool ended = waitpid(c->pid, NULL, WNOHANG) == c->pid;
        if (ended && c->log < 0)
            give_up("the ranks", "ended before their time");
        if (!ended && (c->log < 0 || stamp_seconds() < until))
            continue;
        c->lost = true;
        snprintf(c->why, sizeof c->why,
                 ended ? "its ranks ended before their time" : "no answer within %.0f s", limit);
        job_said(c, c->why, sizeof c->why);
        if (!ended) {
            kill(c->pid, SIGTERM);
            waitpid(c->pid, NULL, 0);
        }
        c->pid = 0;
        return false;
    }
    return true;
}

static void stage_open(struct job *c, const struct job_plan *plan)
{
    size_t head = (sizeof(struct stage) + 4095) / 4096 * 4096;
    int cpu = 0, allowed = cpu_allowed();
    c->stage_bytes = head + plan->shared_bytes;
    c->fd = memfd_create("perf", MFD_CLOEXEC);
    if (c->fd < 0 || ftruncate(c->fd, (off_t)c->stage_bytes) < 0)
        give_up("memory for the ranks to share", strerror(errno));
    c->stage = mmap(NULL, c->stage_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, c->fd,
                    0);
    if (c->stage == MAP_FAILED)
        give_up("memory for the ranks to share", strerror(errno));
    struct stage *s = c->stage;
    s->size = plan->ranks;
    s->crowded = plan->ranks > allowed;
    s->stage_bytes = sizeof *s;
    s->shared_at = head;
    s->pool = plan->pool_bytes;
    s->commander = getpid();
    cpu_mask(s->mask, PERF_RANKS_MAX);
    for (int r = 0; r < plan->ranks; r++, cpu++) {
        cpu = r % allowed ? cpu : 0;
        while (cpu < 64 * PERF_RANKS_MAX - 1 && !(s->mask[cpu / 64] >> (cpu % 64) & 1))
            cpu++;
        s->cpu[r] = cpu;
    }
    bare_prepare(&s->bare, plan->ranks);
}

struct job *job_start(const struct job_plan *plan, char *why, size_t room)
{
    struct job *c = calloc(1, sizeof *c);
    const struct foreign *f = plan->setting.system ? foreign_of(plan->setting.system) : NULL;
    char path[64];
    if (!c)
        give_up("memory", strerror(errno));
    c->ranks = plan->ranks;
    c->log = -1;
    stage_open(c, plan);
    if (f) {
        c->log = memfd_create("said", MFD_CLOEXEC);
        snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)getpid(), c->fd);
        c->began = stamp_now();
        c->pid = foreign_start(f, plan->ranks, c->stage->crowded, path, c->log, why, room);
        if (c->pid && job_await(c, 1, START_S))
            return c;
        if (c->pid == 0 && c->lost)
            snprintf(why, room, "it did not start: %s", c->why);
        job_end(c);
        return NULL;
    }
    job_tutti(c, plan);
    job_await(c, 1, START_S);
    return c;
}

static void job_command(struct job *c, const struct task *task)
{
    struct stage *s = c->stage;
    s->task = *task;
    store_release32(&s->go, load_acquire32(&s->go) + 1);
    futex_wake(&s->go, INT_MAX);
}

/* A peer's ranks and launcher have some seconds to say goodbye to each other. */
void job_end(struct job *c)
{
    struct task end = { .form = FORM_END };
    struct timespec ms = { .tv_nsec = 1000000 };
    bool gone = c->pid == 0;
    int most = (int)(limit_patience(GOODBYE_S) * 1000);
    if (!gone)
        job_command(c, &end);
    for (int i = 0; c->log >= 0 && i < most && !gone; i++) {
        gone = waitpid(c->pid, NULL, WNOHANG) != 0;
        if (!gone)
            nanosleep(&ms, NULL);
    }
    if (!gone && c->log >= 0)
        kill(c->pid, SIGTERM);
    while (!gone && waitpid(c->pid, NULL, 0) < 0 && errno == EINTR) { }
    munmap(c->stage, c->stage_bytes);
    close(c->fd);
    if (c->log >= 0)
        close(c->log);
    free(c);
}

double job_first(const struct job *c)
{
    uint64_t last = 0;
    for (int r = 0; r < c->ranks; r++) {
        if (!c->stage->first[r])
            return 0;
        last = c->stage->first[r] > last ? c->stage->first[r] : last;
    }
    return stamp_ns(last - c->began);
}

double job_up(const struct job *c)
{
    uint64_t longest = 0;
    for (int r = 0; r < c->ranks; r++) {
        if (!c->stage->up[r])
            return 0;
        longest = c->stage->up[r] > longest ? c->stage->up[r] : longest;
    }
    return stamp_ns(longest);
}

const char *job_version(const struct job *c) { return c->stage->version; }

bool job_can(const struct job *c, enum operation_id op, bool work)
{
    return c->stage->can[work] >> op & 1;
}

const char *job_why(const struct job *c) { return c->why; }

/* The figure of sample i: from the first start to the last end. In a chain, behind the first, the
 * start is the last end of the operation before. */
static double job_figure(const struct job *c, const struct task *task, int i, double *returned)
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
        if ((task->form == FORM_CHAIN || task->form == FORM_FIRST) && i > 0) {
            uint64_t e = c->stage->samples[r][i - 1].end;
            before = e > before ? e : before;
        }
    }
    if (task->form == FORM_LATE) {
        *returned = stamp_ns(end - late);
        return (double)cpu;
    }
    if (task->form == FORM_CHAIN || (task->form == FORM_FIRST && i > 0))
        return i > 0 && end > before ? stamp_ns(end - before) : 0;
    return stamp_ns(end - begin) / (double)task->times;
}

double job_soonest(const struct job *c, const struct task *task)
{
    double soonest = 1e18;
    for (int i = 0; i < task->samples; i++)
        for (int late = i % c->ranks, r = 0; r < c->ranks; r++) {
            uint64_t end = c->stage->samples[r][i].end, from = c->stage->samples[late][i].begin;
            double ns = end >= from ? stamp_ns(end - from) : -stamp_ns(from - end);
            soonest = ns < soonest ? ns : soonest;
        }
    return soonest;
}

bool job_run(struct job *c, const struct task *task, struct series *figures, struct series *returns)
{
    if (c->lost)
        return false;
    job_command(c, task);
    if (!job_await(c, load_acquire32(&c->stage->go) + 1, ANSWER_S))
        return false;
    if (task->form == FORM_CHECK) {
        uint64_t wrong = 0;
        for (int r = 0; r < c->ranks; r++)
            wrong += c->stage->samples[r][0].end;
        series_add(figures, (double)wrong);
        return true;
    }
    for (int i = 0; i < task->samples; i++) {
        double returned = 0, figure = job_figure(c, task, i, &returned);
        if (figure <= 0)
            continue;
        series_add(figures, figure);
        if (returns)
            series_add(returns, returned);
    }
    return true;
}
