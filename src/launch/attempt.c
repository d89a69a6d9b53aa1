/* One loop handles all events: a rank ends, a rank writes, a signal comes, a time is over.
 *
 * The end of a job. A rank fails at t. The others are left alone for MOMENT_NS, because most fail
 * or end by themselves, with a better message than ours. Then they get SIGTERM, and at t + grace
 * SIGKILL. There is no such moment after a signal to end, after the deadline, or when the reader of
 * our output has gone (a program without a launcher would then get SIGPIPE). When all ranks have
 * ended, the processes that they left behind (launch/orphans) get a moment, SIGTERM, grace,
 * SIGKILL.
 * Start-up cost: the arena and one fork a rank; nothing waits for an exec. */
#include "launch/attempt.h"

#include "base/clock.h"
#include "base/error.h"
#include "coll/tuning_file.h"
#include "launch/orphans.h"
#include "launch/requests.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* twice the longest slice in which a sleeping rank looks for the dead by itself */
#define MOMENT_NS UINT64_C(500000000)
#define LEAVE_NS  UINT64_C(1000000000)   /* for a process that not even SIGKILL ends soon */

/* 8 ranks take as long by fork as by vfork, 2 less, 64 a tenth more */
enum { FEW = 8 };

static uint64_t after(uint64_t now, int64_t ms)
{
    return ms < 0 ? UINT64_MAX : now + (uint64_t)ms * 1000000;
}

/* ---- start ---- */

static int make_arena(struct attempt *a, char *job_name, size_t room, struct text *why)
{
    struct text name = { job_name, room, 0 };
    text_add(&name, "run-%d-%llu-%lld", (int)getpid(), (unsigned long long)clock_ns() / 1000000,
             (long long)a->number);
    char rules[RULES_TEXT];
    tuning_file_lay(a->rules, rules);
    struct arena_plan plan = {
        a->job->size, job_name, a->span_bytes, rules, a->first_seq, a->store_bytes, a->verify
    };
    return arena_create(&a->arena, &plan, why);
}

static int prepare(struct attempt *a, struct text *why)
{
    char name[64];
    struct stat st;
    int r = make_arena(a, name, sizeof name, why);
    if (r < 0)
        return r;
    /* relaxed: no rank is there yet */
    store_relaxed32(&a->arena.join->boxed, BOXED_BY_LAUNCHER);
    r = fstat(a->arena.fd, &st) < 0 ? -errno : 0;
    struct program_world world = { a->arena.fd, (unsigned long long)st.st_ino, name, a->number };
    struct text path = TEXT_IN(a->program.path);
    text_add(&path, "%s", a->path);
    if (r == 0)
        r = program_make(&a->program, a->job, &world);
    if (r == 0)
        r = children_begin(&a->children, a->job->size, &a->arena);
    if (r == 0 && job_gathers(a->job))
        r = relay_gather(a->relay, a->job->size);
    if (r < 0)
        text_add(why, "%s", error_text(r));
    return r;
}

static void not_started(struct attempt *a, const struct start_failure *failure)
{
    if (a->ending == ENDING_NOT_STARTED)
        return;
    a->ending = ENDING_NOT_STARTED;
    a->failure = *failure;
    a->term_ns = a->kill_ns = UINT64_MAX;
    children_tell(&a->children, SIGKILL);
}

static int start_one(struct attempt *a, int rank)
{
    int ends[2] = { -1, -1 };
    int r = a->relay->sources ? relay_pipes(a->relay, rank, ends) : 0;
    pid_t pid = r < 0 ? r : start_rank(&a->start, &a->program, rank, ends[0], ends[1]);
    for (int i = 0; i < 2; i++)
        if (ends[i] >= 0)
            close(ends[i]);
    if (pid > 0)
        children_add(&a->children, rank, pid);
    return pid < 0 ? (int)pid : 0;
}

static void start_all(struct attempt *a)
{
    for (int rank = 0; rank < a->job->size; rank++) {
        int r = start_one(a, rank);
        if (r < 0) {
            not_started(a, &(struct start_failure){ rank, -r, START_FORK });
            break;
        }
    }
    start_all_done(&a->start);
}

static void hear_of_starts(struct attempt *a)
{
    struct start_failure failure;
    int r;
    if (a->start.report[0] < 0)
        return;
    while ((r = start_failed(&a->start, &failure)) > 0)
        not_started(a, &failure);
    if (r < 0)
        start_end(&a->start);
}

/* ---- the end ---- */

static void begin_end(struct attempt *a, enum attempt_ending ending, uint64_t now, uint64_t term_ns)
{
    if (a->ending != ENDING_NONE)
        return;
    if (ending != ENDING_UNREAD)
        black_box_take(&a->box, &a->arena);
    a->ending = ending;
    a->living_then = a->children.living;
    a->kill_ns = after(now, a->job->grace_ms);
    a->term_ns = term_ns < a->kill_ns ? term_ns : a->kill_ns;
}

static void hear_signals(struct attempt *a, uint64_t now)
{
    struct signals_news news;
    while (signals_next(a->signals, &news)) {
        if (news.number == SIGCHLD)
            continue;
        if (!signals_ends_job(news.number)) {
            requests_answer(a->job, &a->children, a->relay, &news);
            continue;
        }
        if (a->ending == ENDING_NONE)
            a->told_by = news.number;
        black_box_take(&a->box, &a->arena);
        children_expect_end(&a->children);
        if (!news.from_terminal)
            children_pass(&a->children, news.number);
        if (a->sweeping)
            orphans_signal(SIGTERM);
        begin_end(a, ENDING_TOLD, now, UINT64_MAX);
        a->term_ns = UINT64_MAX;         /* the signal that we passed on replaces it */
    }
}

static void tell(struct attempt *a, int number)
{
    if (a->sweeping)
        orphans_signal(number);
    else
        children_tell(&a->children, number);
}

static void steps(struct attempt *a, uint64_t now)
{
    if (a->children.failed)
        begin_end(a, ENDING_FAILED, now, now + MOMENT_NS);
    if (now >= a->deadline_ns && a->children.living)
        begin_end(a, ENDING_TIMED_OUT, now, now);
    if (relay_unread(a->relay) && a->children.living)
        begin_end(a, ENDING_UNREAD, now, now);
    if (now >= a->term_ns) {
        a->term_ns = UINT64_MAX;
        tell(a, SIGTERM);
    }
    if (now >= a->kill_ns) {
        a->kill_ns = UINT64_MAX;
        a->leave_ns = now + LEAVE_NS;
        a->killed = a->killed || a->children.living;
        tell(a, SIGKILL);
    }
}

/* True: a rank or an orphan is left to wait for. */
static bool goes_on(struct attempt *a, uint64_t now)
{
    if (a->children.living)
        return true;
    if (!a->sweeps || !orphans_any())
        return false;
    if (!a->sweeping) {
        a->sweeping = true;
        a->term_ns = now + MOMENT_NS;
        a->kill_ns = after(now + MOMENT_NS, a->job->grace_ms);
        a->leave_ns = UINT64_MAX;
    }
    return now < a->leave_ns;
}

/* ---- the loop ---- */

static struct timespec until_next(const struct attempt *a, uint64_t now)
{
    uint64_t next[] = {
        a->term_ns, a->kill_ns, a->children.living ? UINT64_MAX : a->leave_ns, relay_due(a->relay),
        a->ending == ENDING_NONE ? a->deadline_ns : UINT64_MAX
    };
    uint64_t least = now + UINT64_C(3600000000000);
    for (size_t i = 0; i < sizeof next / sizeof next[0]; i++)
        least = next[i] < least ? next[i] : least;
    uint64_t left = least > now ? least - now : 0;
    return (struct timespec){ (time_t)(left / 1000000000), (long)(left % 1000000000) };
}

static void run(struct attempt *a, struct pollfd *polls)
{
    for (uint64_t now = clock_ns(); goes_on(a, now);) {
        int n = 0;
        polls[n++] = (struct pollfd){ a->signals->control, POLLIN, 0 };
        if (a->start.report[0] >= 0)
            polls[n++] = (struct pollfd){ a->start.report[0], POLLIN, 0 };
        int own = n;
        n += relay_poll(a->relay, polls + n);
        struct timespec timeout = until_next(a, now);
        if (ppoll(polls, (nfds_t)n, &timeout, NULL) < 0)
            n = own;
        now = clock_ns();
        hear_of_starts(a);
        relay_round(a->relay, polls + own, n - own, now);
        hear_signals(a, now);
        children_reap(&a->children);
        steps(a, now);
    }
    hear_of_starts(a);
}

int attempt_run(struct attempt *a, struct text *why)
{
    a->term_ns = a->kill_ns = a->leave_ns = UINT64_MAX;
    int r = prepare(a, why);
    if (r < 0)
        return r;
    struct pollfd *polls = calloc((size_t)relay_polls(a->relay) + 2, sizeof *polls);
    a->start.bind = a->job->bind;
    a->start.few = a->job->size <= FEW;
    a->start.arena_fd = a->arena.fd;
    a->start.signals = a->signals;
    r = polls ? start_begin(&a->start) : -ENOMEM;
    if (r < 0) {
        text_add(why, "%s", error_text(r));
    } else {
        start_all(a);
        run(a, polls);
        start_end(&a->start);
    }
    free(polls);
    relay_finish(a->relay);
    return r;
}

void attempt_free(struct attempt *a)
{
    children_end(&a->children);
    program_free(&a->program);
    black_box_drop(&a->box);
    if (a->arena.base)
        arena_detach(&a->arena);
}
