/* What the launcher says, and its exit status. Each of its lines begins with "tutti run: " and
 * comes after the ranks' last lines. Missing ones of stdin, stdout, stderr are opened first: else
 * another descriptor could get number 1 and be written to. */
#include "launch/supervisor.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/knob.h"
#include "base/system_names.h"
#include "box/keep.h"
#include "coll/select.h"
#include "launch/attempt.h"
#include "launch/orphans.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DESCRIPTORS_BESIDES = 160, EXIT_USAGE = 2 };

struct launcher {
    const struct job *job;
    struct signals signals;
    struct relay relay;
    struct attempt plan;                 /* what all attempts have in common */
    struct rlimit descriptors;
    char path[PATH_MAX];
    char report_room[2048];
    struct text report;                  /* what was said of the end of this attempt */
};

static void say(struct launcher *l, const char *what)
{
    relay_say(&l->relay, "tutti run: %s", what);
    text_add(&l->report, "tutti run: %s\n", what);
}

/* ---- before anything starts ---- */

static void open_standard(void)
{
    int fd;
    do
        fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}

/* Two pipes a rank need descriptors. The ranks get the old limit back when they start. */
static int enough_descriptors(struct launcher *l, struct text *why)
{
    rlim_t wanted = (rlim_t)l->job->size * 2 + DESCRIPTORS_BESIDES;
    if (getrlimit(RLIMIT_NOFILE, &l->descriptors) < 0)
        return -errno;
    struct rlimit more = l->descriptors;
    if (more.rlim_cur >= wanted)
        return 0;
    more.rlim_cur = wanted < more.rlim_max ? wanted : more.rlim_max;
    setrlimit(RLIMIT_NOFILE, &more);
    if (more.rlim_cur >= wanted)
        return 0;
    text_add(why, "%d ranks need %llu file descriptors here, and the limit is %llu (ulimit -n)",
             l->job->size, (unsigned long long)wanted, (unsigned long long)more.rlim_max);
    return -EMFILE;
}

/* Reads the rules and the sizes of the arena from our environment, once: so a wrong one is reported
 * once, and not by every rank. */
static int read_knobs(struct attempt *plan, struct text *why)
{
    int64_t span = 0, store = 0, first = 0, verify = 0;
    char said[256];
    plan->rules = "";
    knob_text(KNOB_ALGORITHM, &plan->rules);
    int r = select_check(plan->rules, why);
    if (r < 0)
        return r;
    if (knob_int(KNOB_SPAN_BYTES, &span, said, sizeof said) < 0
        || knob_int(KNOB_STORE_BYTES, &store, said, sizeof said) < 0
        || knob_int(KNOB_FIRST_SEQ, &first, said, sizeof said) < 0
        || knob_int(KNOB_VERIFY, &verify, said, sizeof said) < 0) {
        text_add(why, "%s", said);
        return -EINVAL;
    }
    plan->span_bytes = (uint64_t)span;
    plan->store_bytes = (uint64_t)store;
    plan->first_seq = (uint64_t)first;
    plan->verify = (int)verify;
    return 0;
}

static int cannot_start(struct launcher *l, int error)
{
    const char *interpreter = error == ENOENT && access(l->path, F_OK) == 0
        ? " (the interpreter or loader it names)"
        : "";
    relay_say(&l->relay, "tutti run: cannot start '%.300s': %s%s", l->job->argv[0], strerror(error),
              interpreter);
    return error == ENOENT ? JOB_NOT_FOUND : JOB_NOT_EXECUTABLE;
}

/* 0, or the status to exit with; what was wrong has been said. */
static int get_ready(struct launcher *l)
{
    char said[512];
    struct text why = TEXT_IN(said);
    text_clear(&why);
    int r = program_find(l->path, sizeof l->path, l->job->argv[0]);
    if (r < 0) {
        l->path[0] = 0;
        return cannot_start(l, -r);
    }
    r = read_knobs(&l->plan, &why);
    if (r < 0) {
        say(l, why.used ? said : error_text(r));
        return EXIT_USAGE;
    }
    r = enough_descriptors(l, &why);
    if (r < 0) {
        say(l, why.used ? said : error_text(r));
        return EXIT_FAILURE;
    }
    return 0;
}

/* ---- afterwards ---- */

static int end_not_started(struct launcher *l, const struct attempt *a)
{
    const struct start_failure *f = &a->failure;
    if (f->step == START_EXEC)
        return cannot_start(l, f->error);
    if (f->step == START_BIND)
        relay_say(&l->relay, "tutti run: cannot bind rank %d: %s", f->rank, strerror(f->error));
    else
        relay_say(&l->relay, "tutti run: cannot start rank %d of %d: %s", f->rank, l->job->size,
                  strerror(f->error));
    return EXIT_FAILURE;
}

static void say_killed(struct launcher *l, const struct attempt *a)
{
    char said[128];
    struct text t = TEXT_IN(said);
    if (!a->killed)
        return;
    text_add(&t, "not all ranks ended within ");
    text_add_duration(&t, (uint64_t)l->job->grace_ms * 1000000);
    text_add(&t, "; the rest was killed");
    say(l, said);
}

static int end_timed_out(struct launcher *l, const struct attempt *a)
{
    char said[160];
    struct text t = TEXT_IN(said);
    text_add(&t, "the job's time of ");
    text_add_duration(&t, (uint64_t)l->job->timeout_ms * 1000000);
    text_add(&t, " was up; %d of %d ranks had to be ended", a->living_then, l->job->size);
    say(l, said);
    say_killed(l, a);
    return JOB_TIMED_OUT;
}

static int end_told(struct launcher *l, const struct attempt *a)
{
    char said[64];
    struct text t = TEXT_IN(said);
    text_add(&t, "told to end by signal %d (SIG%s)", a->told_by, system_signal_name(a->told_by));
    say(l, said);
    say_killed(l, a);
    return 128 + a->told_by;
}

/* If nobody reads stderr, this line is lost. */
static int end_unread(struct launcher *l, const struct attempt *a)
{
    relay_say(&l->relay,
              "tutti run: nobody reads the output any more; %d of %d ranks had to be ended",
              a->living_then, l->job->size);
    say_killed(l, a);
    return JOB_UNREAD;
}

static int end_failed(struct launcher *l, const struct attempt *a)
{
    char said[512];
    struct text t = TEXT_IN(said);
    int rank = children_blame(&a->children);
    if (rank < 0)
        return EXIT_FAILURE;
    children_add_blame(&a->children, rank, &t);
    say(l, said);
    return children_exit_status(a->children.child[rank].status);
}

static int end(struct launcher *l, const struct attempt *a)
{
    switch (a->ending) {
    case ENDING_NOT_STARTED: return end_not_started(l, a);
    case ENDING_TIMED_OUT:   return end_timed_out(l, a);
    case ENDING_TOLD:        return end_told(l, a);
    case ENDING_UNREAD:      return end_unread(l, a);
    case ENDING_FAILED:      return end_failed(l, a);
    case ENDING_NONE:        break;
    }
    return EXIT_SUCCESS;
}

/* The last line of an attempt: it is what one looks for. */
static void say_box(struct launcher *l, struct attempt *a)
{
    char said[KEEP_PATH + 600];
    struct text t = TEXT_IN(said);
    text_clear(&t);
    if (a->ending == ENDING_NONE || a->ending == ENDING_UNREAD || a->ending == ENDING_NOT_STARTED
        || !black_box_write(&a->box, &a->children, l->report.at, &t))
        return;
    relay_say(&l->relay, "tutti run: %s", said);
}

/* ---- all attempts ---- */

static int run_once(struct launcher *l, int64_t number, enum attempt_ending *ending)
{
    char said[512];
    struct text why = TEXT_IN(said);
    struct attempt a = l->plan;
    text_clear(&why);
    text_clear(&l->report);
    a.number = number;
    a.start.descriptors = l->descriptors;
    int r = attempt_run(&a, &why);
    *ending = r < 0 ? ENDING_NOT_STARTED : a.ending;
    if (r < 0)
        say(l, why.used ? said : error_text(r));
    int status = r < 0 ? EXIT_FAILURE : end(l, &a);
    if (r == 0)
        say_box(l, &a);
    attempt_free(&a);
    return status;
}

static int run_all(struct launcher *l)
{
    enum attempt_ending ending;
    for (int64_t number = 0;; number++) {
        int status = run_once(l, number, &ending);
        if (ending != ENDING_FAILED || number >= l->job->restarts)
            return status;
        relay_say(&l->relay, "tutti run: starting the job again (%lld of %lld)",
                  (long long)number + 1, (long long)l->job->restarts);
    }
}

/* A reader that is gone (EPIPE) has had enough: the status is as if SIGPIPE had ended us. Any other
 * error means that output is lost. */
static int look_at_output(struct launcher *l, int status)
{
    int error = l->relay.outlets[0].error;
    if (relay_unread(&l->relay) && status == 0)
        return JOB_UNREAD;
    if (error == 0 || error == EPIPE)
        return status;
    relay_say(&l->relay, "tutti run: cannot write standard output: %s", strerror(error));
    return status ? status : EXIT_FAILURE;
}

int supervisor_run(const struct job *job)
{
    struct launcher l = { .job = job };
    l.report = TEXT_IN(l.report_room);
    open_standard();
    bool sweeps = orphans_begin();
    int r = signals_begin(&l.signals);
    if (r == 0)
        r = relay_begin(&l.relay, l.signals.writes, job->tag);
    if (r < 0) {
        fprintf(stderr, "tutti run: %s\n", error_text(r));
        return EXIT_FAILURE;
    }
    l.relay.tty = job->tty;
    l.plan = (struct attempt){
        .job = job, .signals = &l.signals, .relay = &l.relay, .path = l.path, .sweeps = sweeps,
        .deadline_ns = job->timeout_ms > 0 ? clock_ns() + (uint64_t)job->timeout_ms * 1000000
            : UINT64_MAX
    };
    int status = get_ready(&l);
    if (status == 0)
        status = run_all(&l);
    signals_let_end();
    for (int i = 0; i < 2; i++)
        output_stream_write_all(&l.relay.outlets[i]);
    status = look_at_output(&l, status);
    relay_end(&l.relay);
    signals_end(&l.signals);
    return status;
}
