/* tutti_spawn: the parent makes an arena and a child for each rank. Each child joins the arena as
 * one that was handed down. The parent is no rank. It waits, notes in the arena how each rank ended
 * (so that survivors can say so), and kills the rest when the job's time is over. */
#define TUTTI_NO_SITES
#include "api/world.h"

#include "arena/cause.h"
#include "base/error.h"
#include "base/clock.h"
#include "coll/tuning_file.h"
#include "group/join.h"
#include "os/caller.h"
#include "os/file.h"
#include "os/reap.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

struct spawn {
    struct arena arena;
    tutti_options options;
    int size;
    pid_t parent;
    struct caller caller;              /* the children restore it, too */
    pid_t *pids;
    /* descriptors of the children, readable when the child has ended; -1: none */
    int *fds;
    int *status;
    bool ignores;   /* this process ignores how its children end, but not now; as `children` says */
    struct sigaction children;
    int unknown;                       /* a rank whose end could not be read, + 1; 0: none */
};

static _Noreturn void spawn_child(struct spawn *s, int rank,
                                  int (*fn)(tutti_comm *world, void *arg), void *arg)
{
    /* If the parent is killed, it leaves no ranks behind. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() != s->parent)
        _exit(255);
    if (s->ignores)
        sigaction(SIGCHLD, &s->children, NULL);
    struct arena arena;
    struct text why = TEXT_IN(world_report);
    tutti_comm *world = NULL;
    int host_fd = -1;
    struct join_request request = { .fd = file_copy_up(s->arena.fd), .rank = rank, .size = s->size,
                                    .timeout_ms = s->options.join_timeout_ms };
    text_clear(&why);
    if (request.fd < 0)
        text_add(&why, "no file descriptor is free for the arena (raise ulimit -n, or close some)");
    int r = request.fd < 0 ? request.fd : world_bind(rank, s->options.flags, &why);
    if (r == 0)
        r = join_world(&arena, &request, &host_fd, &why);
    if (r == 0) {
        /* a rank has one descriptor of it, which it keeps from its own children */
        arena_detach(&s->arena);
        r = world_begin(&world, &arena, rank, host_fd, &s->options, 0, &why);
    }
    if (r < 0) {
        fprintf(stderr, "tutti_spawn: rank %d: %s\n", rank,
                why.used ? world_report : error_text(r));
        fflush(NULL);
        _exit(255);
    }
    caller_end(&s->caller);
    int value = fn(world, arg);
    world_leave_all();                      /* a return from fn is an orderly end: left, not died */
    fflush(NULL);
    _exit(value & 255);
}

static void spawn_note(struct spawn *s, int rank, int status)
{
    s->status[rank] = status;
    cause_note(&s->arena, (uint32_t)rank, cause_of(&s->arena, status));
    s->pids[rank] = 0;
    if (s->fds[rank] >= 0)
        close(s->fds[rank]);
    s->fds[rank] = -1;
}

static int spawn_reap(struct spawn *s)
{
    int left = 0;
    for (int r = 0; r < s->size; r++) {
        int status;
        if (s->pids[r] <= 0)
            continue;
        pid_t pid = s->pids[r], got = reap_look(pid, &status);
        if (got == 0) {
            left++;
            continue;
        }
        spawn_note(s, r, got > 0 ? status : PROCESS_END_UNKNOWN);
        if (got > 0)
            reap_take(pid);
        else if (!s->unknown)
            s->unknown = r + 1;
    }
    return left;
}

static void spawn_kill(const struct spawn *s)
{
    for (int r = 0; r < s->size; r++)
        if (s->pids[r] > 0)
            kill(s->pids[r], SIGKILL);
}

/* Waits until all have ended or the job's time is over. Sleeps on the children's descriptors;
 * without them, in slices. */
static int spawn_wait(struct spawn *s, int64_t world_ms)
{
    struct pollfd *polls = calloc((size_t)s->size, sizeof *polls);
    uint64_t began = clock_ns();
    int r = 0;
    while (spawn_reap(s)) {
        int64_t left = world_ms > 0 ? world_ms - (int64_t)((clock_ns() - began) / 1000000) : 1000;
        if (world_ms > 0 && left <= 0 && r == 0) {
            r = -ETIMEDOUT;
            spawn_kill(s);
        }
        int n = 0, slice = left > 1000 || left <= 0 ? 1000 : (int)left;
        for (int p = 0; polls && p < s->size; p++)
            if (s->pids[p] > 0 && s->fds[p] >= 0)
                polls[n++] = (struct pollfd){ s->fds[p], POLLIN, 0 };
            else if (s->pids[p] > 0)
                slice = 5;
        poll(polls, (nfds_t)n, polls ? slice : 5);
    }
    free(polls);
    return r;
}

static int spawn_start(struct spawn *s, int (*fn)(tutti_comm *world, void *arg), void *arg,
                       struct text *why)
{
    fflush(NULL);                           /* or every child would write what is buffered here */
    for (int r = 0; r < s->size; r++) {
        pid_t pid = fork();
        if (pid == 0)
            spawn_child(s, r, fn, arg);
        if (pid < 0) {
            text_add(why, "cannot start rank %d of %d: fork: %s", r, s->size, strerror(errno));
            int error = -errno;
            spawn_kill(s);
            spawn_wait(s, 0);
            return error;
        }
        s->pids[r] = pid;
        s->fds[r] = (int)syscall(SYS_pidfd_open, pid, 0);
    }
    return 0;
}

static int spawn_prepare(struct spawn *s, const tutti_options *options, struct text *why)
{
    struct arena_plan plan;
    int r = world_options(&s->options, options, why);
    if (r == 0)
        r = world_plan(&plan, s->size, "spawn", &s->options, why);
    if (r < 0)
        return r;
    s->pids = calloc((size_t)s->size, sizeof *s->pids);
    s->fds = malloc((size_t)s->size * sizeof *s->fds);
    s->status = calloc((size_t)s->size, sizeof *s->status);
    if (!s->pids || !s->fds || !s->status)
        return -ENOMEM;
    memset(s->fds, 0xff, (size_t)s->size * sizeof *s->fds);
    char rules[RULES_TEXT];
    tuning_file_lay(plan.rules, rules);
    plan.rules = rules;
    return arena_create(&s->arena, &plan, why);
}

int tutti_spawn(int size, int (*fn)(tutti_comm *world, void *arg), void *arg,
                const tutti_options *options, int status[])
{
    CALLER_KEPT;
    struct spawn s = { .size = size, .parent = getpid(), .caller = caller_kept };
    struct text why = TEXT_IN(world_report);
    int64_t world_ms = options ? options->timeout_ms : 0;
    text_clear(&why);
    if (size < 1 || size > RANKS_MAX || !fn) {
        text_add(&why, "tutti_spawn: %s; expected 1 to %d ranks and a function",
                 fn ? "that size is out of range" : "fn is NULL", RANKS_MAX);
        return -EINVAL;
    }
    /* options->timeout_ms limits the whole job. Its operations have the environment's deadline or
     * the default. */
    tutti_options own = options ? *options : (tutti_options){ 0 };
    own.timeout_ms = 0;
    int failed = 0, r = spawn_prepare(&s, &own, &why);
    if (r == 0) {
        s.ignores = reap_begin(&s.children);
        r = spawn_start(&s, fn, arg, &why);
        if (r == 0)
            r = spawn_wait(&s, world_ms);
        if (s.ignores)
            sigaction(SIGCHLD, &s.children, NULL);
        if (r == -ETIMEDOUT)
            text_add(&why, "tutti_spawn: the job's time, %lld ms, was up; its ranks were killed",
                     (long long)world_ms);
        if (r == 0 && s.unknown) {
            r = -ECHILD;
            text_add(&why,
                     "tutti_spawn: how rank %d ended cannot be known: something else in this "
                     "process waits for its children",
                     s.unknown - 1);
        }
        arena_detach(&s.arena);
    }
    for (int p = 0; s.status && p < size; p++) {
        failed += s.status[p] != 0;
        if (status)
            status[p] = s.status[p];
    }
    free(s.pids);
    free(s.fds);
    free(s.status);
    if (r < 0 && !why.used)
        text_add(&why, "tutti_spawn: %s", error_text(r));
    return r < 0 ? r : failed;
}
