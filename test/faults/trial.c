/* The ranks are children of the test itself, because a tracer waits for its child as its parent
 * does; they meet by one name that all trials share, so that each trial is also the next job of the
 * one before. Cost: some milliseconds for the job, and some 10 us a step. */
#include "trial.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* One that sleeps by slices may be led so slowly that a slice is always over when it comes to
 * sleep: the others come then, too. */
enum { EVENTS_ALONE = 1000, INSTRUCTIONS_ALONE = 20000 };
/* So often in a row one that is led must be found asleep to be left there: what it waits for has
 * had its time, or is not to come. */
enum { ASLEEP_LONG = 100 };

static struct trial_page *page;
static char job[64];
static int silence = -1;

void trial_open(void)
{
    step_prepare();
    snprintf(job, sizeof job, "kill-step-%d", (int)getpid());
    page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    silence = getenv("TUTTI_KILL_AT") ? -1 : open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (page == MAP_FAILED)
        abort();
    setenv("TUTTI_STORE_BYTES", "2M", 1);
}

static pid_t start(const struct act *act, int rank, int size, int victim,
                   int (*run)(struct role *s))
{
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    static const int caught[] = { SIGSEGV, SIGABRT, SIGFPE, SIGILL, SIGBUS, SIGSYS };
    static struct role s;
    struct rlimit core;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    step_child();
    for (size_t i = 0; i < sizeof caught / sizeof caught[0]; i++)
        signal(caught[i], SIG_DFL); /* the test's own handlers would go on with the test, in here */
    if (getrlimit(RLIMIT_CORE, &core) == 0) {
        core.rlim_cur = 0;
        setrlimit(RLIMIT_CORE, &core);
    }
    if (silence >= 0)
        dup2(silence, STDERR_FILENO);
    s = (struct role){
        .act = act, .page = page, .job = job, .rank = rank, .size = size, .victim = victim
    };
    int r = run(&s);
    if (r == 0)
        role_come(&s, STAGE_DONE);
    _exit(r);
}

__attribute__((format(printf, 2, 3))) static void wrong(struct trial_result *r, const char *format,
                                                        ...)
{
    size_t used = strlen(r->text);
    va_list args;
    va_start(args, format);
    vsnprintf(r->text + used, sizeof r->text - used, format, args);
    va_end(args);
    r->wrong = true;
}

struct job {
    const struct point *p;
    pid_t pid[TRIAL_MOST];
    int status[TRIAL_MOST];
    struct step step, second;
    bool released, two;               /* two: both are dead */
    uint64_t killed_ns;
};

static bool dead_before(const struct point *p, int rank)
{
    return (p->act->flags & (ACT_DEAD | ACT_BROKEN)) && rank == p->act->size - 1;
}

static bool survives(const struct job *j, int rank)
{
    return rank != j->p->victim && !dead_before(j->p, rank)
        && !(j->two && rank + 1 == j->p->second);
}

static void release(struct job *j)
{
    role_raise(&page->released, 1);
    j->released = true;
}

/* Until all others are in the operation, or in what comes after it, and asleep there, or have
 * ended. Bounded: it is only an order of events. */
static void await_asleep(const struct job *j)
{
    uint64_t end = clock_ns() + PATIENCE_NS / 10;
    for (int rank = 0; rank < j->p->act->size; rank++)
        for (int found = 0; survives(j, rank) && found < 3 && clock_ns() < end;) {
            char state = step_state(j->pid[rank]);
            bool there = load_acquire32(&page->rank[rank].stage) >= STAGE_IN && state == 'S';
            if (!state || state == 'Z')
                break;
            found = there ? found + 1 : 0;
            nanosleep(&(struct timespec){ 0, 50000 }, NULL);         /* how often to ask */
        }
}

/* Some instructions further. One that sleeps is led out of its sleep first: the shield can be taken
 * away from one that stands. */
static bool tail(struct job *j)
{
    const struct point *p = j->p;
    enum stepped now = STEP_ON;
    if (p->tail && p->events) {
        if (j->step.asleep && (now = step_event(&j->step)) != STEP_ON)
            return now != STEP_GONE;
        step_unshield(&j->step);
    }
    for (long i = 0; i < p->tail && now != STEP_MARK; i++) {
        now = step_instruction(&j->step);
        if (now == STEP_ASLEEP && !j->released && !(p->act->flags & ACT_HOLD))
            release(j);
        else if (now == STEP_ASLEEP && i % 2)
            break;                                   /* in its sleep, now and then */
        if (now == STEP_GONE)
            return false;
    }
    return true;
}

/* Leads the victim to its point. False: it ended before. */
static bool lead(struct job *j, struct trial_result *r)
{
    const struct point *p = j->p;
    for (int asleep = 0;;) {
        long *count = j->released ? &r->after : &r->before;
        bool loops = !(p->act->flags & ACT_HOLD)
            && r->before >= (p->events ? EVENTS_ALONE : INSTRUCTIONS_ALONE);
        if (!j->released && (loops || (p->release > 0 && r->before >= p->release))) {
            release(j);
            continue;
        }
        r->reached = !p->asleep && j->released == p->after && *count >= p->n;
        if (r->reached)
            break;
        enum stepped now = p->events ? step_event(&j->step) : step_instruction(&j->step);
        if (now == STEP_ASLEEP && p->asleep) {
            r->reached = true;
            return true;
        }
        if (now == STEP_ASLEEP && !j->released && !(p->act->flags & ACT_HOLD))
            release(j);
        asleep = now == STEP_ASLEEP ? asleep + 1 : 0;
        if (asleep >= ASLEEP_LONG && (p->act->flags & ACT_PROGRESS))
            return true;                             /* it has no end of its own */
        if (now == STEP_GONE)
            return false;
        if (now == STEP_MARK)
            return true;
        *count += now == STEP_ON;
        if (p->measure && now == STEP_ON && r->gaps[j->released] < GAPS) {
            r->gap[j->released][r->gaps[j->released]]++;
            r->gaps[j->released] += j->step.event;
        }
    }
    return tail(j);
}

static void shield(struct job *j)
{
    const struct act *act = j->p->act;
    if (!j->p->events && !j->p->measure)
        return;
    j->step.keeps_all = act->flags & ACT_JOINS;
    step_shield(&j->step, act->flags & ACT_JOINS ? 0 : page->rank[j->p->victim].base,
                act->flags & ACT_SPANS ? page->all : page->control);
}

/* The first is dead, and the others run: another one is caught where it is, and led on to
 * where it dies. */
static void kill_second(struct job *j, struct trial_result *r)
{
    const struct point *p = j->p;
    int rank = p->second - 1;
    struct step *s = &j->second;
    enum stepped now = STEP_ON;
    if (!step_catch(s, j->pid[rank], false)) {
        if (s->over) {
            j->status[rank] = s->status;
            j->pid[rank] = 0;
        }
        return;                                      /* it was through */
    }
    step_bound(s, 2 * TRIAL_PATIENCE_S);
    if (p->second_events && step_shield(s, page->rank[rank].base, page->control))
        for (int asleep = 0; asleep < ASLEEP_LONG; asleep++)
            if ((now = step_instruction(s)) != STEP_ASLEEP)
                break;                               /* out of the call that it was caught in */
    for (int asleep = 0; r->second_steps < p->second_n && asleep < ASLEEP_LONG && now != STEP_GONE
         && !(p->second_events && s->asleep && s->single);) {
        now = p->second_events ? step_event(s) : step_instruction(s);
        asleep = now == STEP_ASLEEP ? asleep + 1 : 0;
        r->second_steps += now == STEP_ON;
    }
    step_bound(s, 0);
    step_kill(s);
    j->pid[rank] = 0;
    j->status[rank] = s->status;
    j->two = r->two = WIFSIGNALED(s->status) && WTERMSIG(s->status) == SIGKILL;
    if (s->fault)
        wrong(r, "rank %d, the second to die, met signal %d\n", rank, s->fault);
}

/* The end of all others: true, or a hang, of which they are freed by force. */
static bool reap(struct job *j, struct trial_result *r)
{
    bool hang = false;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    uint64_t end = clock_ns() + PATIENCE_NS;
    for (int rank = 0; rank < j->p->act->size; rank++) {
        if (j->pid[rank] <= 0)
            continue;
        while (waitpid(j->pid[rank], &j->status[rank], WNOHANG) == 0) {
            if (clock_ns() > end && !hang) {
                hang = true;
                for (int q = rank; q < j->p->act->size; q++)
                    if (j->pid[q] > 0 && waitpid(j->pid[q], &j->status[q], WNOHANG) == 0) {
                        wrong(r, "rank %d hangs at stage %u, state %c\n", q,
                              load_acquire32(&page->rank[q].stage), step_state(j->pid[q]));
                        kill(j->pid[q], SIGKILL);
                    } else
                        j->pid[q] = 0;
                if (j->pid[rank] <= 0)
                    break;
            }
            sigtimedwait(&set, NULL, &(struct timespec){ 0, 2000000 });
        }
        j->pid[rank] = 0;
    }
    return !hang;
}

static void judge(struct job *j, struct trial_result *r)
{
    const struct point *p = j->p;
    const struct trial_rank *first = NULL, *good = NULL;
    for (int rank = 0; rank < p->act->size; rank++) {
        const struct trial_rank *one = &page->rank[rank];
        if (!survives(j, rank))
            continue;
        if (one->wrong[0] || j->status[rank])
            wrong(r, "rank %d: status 0x%x, stage %u: %s\n", rank, (unsigned)j->status[rank],
                  load_acquire32(&one->stage), one->wrong);
        if (one->met_ns > j->killed_ns && one->met_ns - j->killed_ns > r->worst_ns)
            r->worst_ns = one->met_ns - j->killed_ns;
        first = first ? first : one;
        good = one->gave >= 0 && !good ? one : good;
        if ((p->act->flags & ACT_ALIKE) && (one->gave != first->gave || one->cause != first->cause))
            wrong(r, "not the same on all: rank %d got %d, another %d\n", rank, one->gave,
                  first->gave);
        if ((p->act->flags & ACT_NUMBER) && one->gave >= 0 && one->number != good->number)
            wrong(r, "not the same on all: rank %d has %" PRIu64 ", another %" PRIu64 "\n", rank,
                  one->number, good->number);
        if ((p->act->flags & ACT_JOINS) && (one->gave < 0) != (first->gave < 0))
            wrong(r, "rank %d joined with %d, another with %d\n", rank, one->gave, first->gave);
    }
    r->gave = first ? first->gave : 0;
    if (r->wrong)
        for (int rank = 0; rank < p->act->size; rank++)
            wrong(r, "  rank %d: gave %d, then %d, %d, members %d; %.200s\n", rank,
                  page->rank[rank].gave, page->rank[rank].then[0], page->rank[rank].then[1],
                  page->rank[rank].members, page->rank[rank].report);
}

static bool begin(struct job *j, struct trial_result *r)
{
    const struct point *p = j->p;
    bool thread = p->act->flags & ACT_PROGRESS;
    for (int rank = 0; rank < p->act->size; rank++)
        j->pid[rank] = start(p->act, rank, p->act->size, p->victim, role_run);
    if (!thread && !step_seize(&j->step, j->pid[p->victim])) {
        wrong(r, "ptrace: %s\n", strerror(errno));
        return false;
    }
    for (int rank = 0; rank < p->act->size; rank++) {
        if (!role_awaits(&page->rank[rank].stage, STAGE_READY)
            || (dead_before(p, rank) && waitpid(j->pid[rank], &j->status[rank], 0) < 0)) {
            wrong(r, "rank %d does not come to the operation\n", rank);
            return false;
        }
        if (dead_before(p, rank))
            j->pid[rank] = 0;
    }
    if (thread && !step_catch(&j->step, j->pid[p->victim], true)) {
        wrong(r, "the victim's other thread: %s\n", strerror(errno));
        return false;
    }
    if (p->release == 0) {
        release(j);
        await_asleep(j);
    }
    role_raise(&page->seized, 1);
    role_raise(&page->go, 1);
    return thread || step_to_mark(&j->step);
}

void trial_run(const struct point *p, struct trial_result *r)
{
    struct job j = { .p = p };
    uint64_t control = page->control, all = page->all;
    *r = (struct trial_result){ 0 };
    memset(page, 0, sizeof *page);
    page->control = control;
    page->all = all;
    page->second = p->second;
    setenv("TUTTI_ALGORITHM",
           every_rules(p->act->algorithm ? p->act->algorithm : "inline",
                       p->act->gate ? p->act->gate : "flags"),
           1);
    fflush(NULL);
    if (begin(&j, r)) {
        step_bound(&j.step, 2 * TRIAL_PATIENCE_S);
        shield(&j);
        bool led = lead(&j, r);
        step_bound(&j.step, 0);
        if (!led)
            wrong(r, "the victim ended by itself: status 0x%x, signal %d\n",
                  (unsigned)j.step.status, j.step.fault);
    } else
        wrong(r, "the victim did not come to the operation: %s\n", page->rank[p->victim].wrong);
    j.killed_ns = clock_ns();
    step_kill(&j.step);
    j.pid[p->victim] = 0;
    if (!j.released)
        release(&j);
    if (p->second && !r->wrong)
        kill_second(&j, r);
    r->hang = !reap(&j, r);
    judge(&j, r);
}

static int plain_run(struct role *s)
{
    int r = role_join(s);
    if (r == 0)
        r = tutti_barrier(s->world, NULL);
    if (r)
        return role_wrong(s, "%d (%s)", r, tutti_explain(s->world));
    return tutti_finalize(s->world) ? 1 : 0;
}

bool trial_next_job(char *text, size_t bytes)
{
    static const struct act plain = { .name = "the next job", .size = 3 };
    struct trial_result r = { 0 };
    struct job j = { .p = &(struct point){ .act = &plain, .victim = -1 } };
    memset(page, 0, sizeof *page);
    for (int rank = 0; rank < plain.size; rank++)
        j.pid[rank] = start(&plain, rank, plain.size, -1, plain_run);
    reap(&j, &r);
    judge(&j, &r);
    snprintf(text, bytes, "%s", r.text);
    return !r.wrong;
}

static int does_nothing(struct role *s)
{
    role_await(&s->page->go, 1);
    step_mark();
    step_mark();
    return 0;
}

/* One that comes to a mark, to another, and to its end. False: the system lets nobody trace it; it
 * is reaped, and errno says why. */
static bool seize_nothing(struct step *step)
{
    static const struct act nothing = { .name = "nothing", .size = 1 };
    memset(page, 0, sizeof *page);
    pid_t pid = start(&nothing, 0, 1, 0, does_nothing);
    bool seized = step_seize(step, pid);
    int error = errno;
    if (!seized) {
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
    }
    role_raise(&page->go, 1);
    errno = error;
    return seized;
}

bool trial_allowed(char *why, size_t bytes)
{
    struct step step;
    bool seized = seize_nothing(&step);
    snprintf(why, bytes,
             seized ? "a traced process does not stop at its marks" : "ptrace is refused: %s",
             strerror(errno));
    bool led = seized && step_to_mark(&step) && step_instruction(&step) == STEP_ON;
    if (seized)
        step_kill(&step);
    return led;
}

int trial_led_to_its_end(bool events)
{
    struct step step;
    enum stepped now = STEP_ON;
    if (!seize_nothing(&step) || !step_to_mark(&step))
        return -1;
    while (now != STEP_GONE)
        now = events ? step_event(&step) : step_instruction(&step);
    step_kill(&step);
    return step.fault ? -step.fault : step.status;
}

void trial_say(const struct point *p, char *text, size_t bytes)
{
    int used = snprintf(text, bytes, "%s,%d,%ld,%s,%s,%ld,%ld", p->act->name, p->victim, p->release,
                        p->events ? "events" : "instructions",
                        p->asleep ? "asleep"
                            : p->after ? "after"
                            : "before",
                        p->n, p->tail);
    if (p->second && used > 0 && (size_t)used < bytes)
        snprintf(text + used, bytes - (size_t)used, ",%d,%s,%ld", p->second - 1,
                 p->second_events ? "events" : "instructions", p->second_n);
}

bool trial_read(struct point *p, const char *text)
{
    char name[64], unit[32], side[32], second[32];
    int rank;
    *p = (struct point){ 0 };
    int n = sscanf(text, "%63[^,],%d,%ld,%31[^,],%31[^,],%ld,%ld,%d,%31[^,],%ld", name, &p->victim,
                   &p->release, unit, side, &p->n, &p->tail, &rank, second, &p->second_n);
    if (n != 7 && n != 10)
        return false;
    p->second = n == 10 ? rank + 1 : 0;
    p->second_events = n == 10 && !strcmp(second, "events");
    p->events = !strcmp(unit, "events");
    p->after = !strcmp(side, "after");
    p->asleep = !strcmp(side, "asleep");
    for (int i = 0; i < acts_count; i++)
        if (!strcmp(acts[i].name, name))
            p->act = &acts[i];
    return p->act && p->victim >= 0 && p->victim < p->act->size && p->second >= 0
        && p->second <= p->act->size;
}
