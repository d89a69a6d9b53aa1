/* A job process is the parent of the ranks and a child of the test. tutti_spawn blocks its caller
 * and reaps its children; so the test itself stays free to kill, and is the watchdog. Each process
 * dies with its parent, so a test that is killed leaves nothing behind. */
#include "support/team.h"

#include "base/clock.h"
#include "os/futex.h"
#include "os/process.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { SLICE_NS = 20000000 };

static struct { struct team *team; team_body *body; } here;   /* in the job process and its ranks */

static void must(bool holds, const char *what)
{
    if (holds)
        return;
    perror(what);
    abort();
}

static uint64_t end_of_patience(void)
{
    return clock_ns() + TEAM_PATIENCE_S * UINT64_C(1000000000);
}

static int team_rank_body(tutti_comm *world, void *arg)
{
    int rank = *(int *)arg >= 0 ? *(int *)arg : tutti_rank(world);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    store_release32(&here.team->rank[rank].pid, (uint32_t)getpid());
    return here.body(world, rank, here.team);
}

static struct team *team_make(int size, team_body *body, bool quiet)
{
    struct team *team = mmap(NULL, sizeof *team, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                             -1, 0);
    must(team != MAP_FAILED, "mmap");
    must(size <= TEAM_MOST, "size");
    team->size = size;
    team->stderr_fd = quiet ? memfd_create("stderr", MFD_CLOEXEC) : -1;
    if (team->stderr_fd >= 0)
        /* a memfd does not lock its write position: two ranks would overwrite each other */
        fcntl(team->stderr_fd, F_SETFL, O_APPEND);
    here.team = team;
    here.body = body;
    fflush(NULL);
    return team;
}

static void team_child_ready(struct team *team)
{
    struct rlimit core;
    static const int caught[] = { SIGSEGV, SIGABRT, SIGFPE, SIGILL, SIGBUS, SIGSYS };
    for (size_t i = 0; i < sizeof caught / sizeof caught[0]; i++)
        signal(caught[i], SIG_DFL); /* the test's own handlers would continue the test here */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getrlimit(RLIMIT_CORE, &core) == 0) {
        core.rlim_cur = 0;
        setrlimit(RLIMIT_CORE, &core);      /* ranks that fault on purpose must leave no files */
    }
    if (team->stderr_fd >= 0)
        dup2(team->stderr_fd, STDERR_FILENO);
}

struct team *team_start(int size, team_body *body, bool quiet)
{
    struct team *team = team_make(size, body, quiet);
    pid_t pid = fork();
    must(pid >= 0, "fork");
    if (pid == 0) {
        int by_world = -1;
        team_child_ready(team);
        team->said = tutti_spawn(size, team_rank_body, &by_world, NULL, team->status);
        _exit(0);
    }
    team->job = pid;
    return team;
}

struct team *team_start_named(int size, team_body *body, bool quiet)
{
    struct team *team = team_make(size, body, quiet);
    pid_t job = fork();
    must(job >= 0, "fork");
    if (job == 0) {
        pid_t pids[TEAM_MOST];
        team_child_ready(team);
        for (int r = 0; r < size; r++) {
            pids[r] = fork();
            must(pids[r] >= 0, "fork");
            if (pids[r] == 0)
                _exit(team_rank_body(NULL, &r));
        }
        for (int r = 0; r < size; r++)
            while (waitpid(pids[r], &team->status[r], 0) < 0 && errno == EINTR) { }
        _exit(0);
    }
    team->job = job;
    return team;
}

static void team_kill_all(struct team *team)
{
    for (int r = 0; r < team->size; r++) {
        pid_t pid = team_pid(team, r);
        if (pid > 0)
            kill(pid, SIGKILL);
    }
    kill(team->job, SIGKILL);
}

int team_end(struct team *team)
{
    int result = 0;
    for (uint64_t end = end_of_patience(); team->job;) {
        pid_t got = waitpid(team->job, NULL, WNOHANG);
        if (got == team->job || (got < 0 && errno == ECHILD)) {
            team->job = 0;
            break;
        }
        if (clock_ns() > end && result == 0) {
            result = -1;
            team_kill_all(team);
        }
        usleep(500);                                 /* the interval of looks, not a limit */
    }
    return result;
}

void team_free(struct team *team)
{
    if (team->stderr_fd >= 0)
        close(team->stderr_fd);
    munmap(team, sizeof *team);
}

void team_dismiss(struct team *team, uint32_t what)
{
    for (int r = 0; r < team->size; r++)
        team_tell(team, r, what);
    assert_int_equal(team_end(team), 0);
}

void team_expect(const struct team *team, int rank, int first, int second)
{
    assert_int_equal(team->rank[rank].error[0], first);
    assert_int_equal(team->rank[rank].error[1], second);
}

const char *team_stderr(struct team *team)
{
    static char text[65536];
    ssize_t got = team->stderr_fd >= 0 ? pread(team->stderr_fd, text, sizeof text - 1, 0) : 0;
    text[got > 0 ? got : 0] = 0;
    return text;
}

/* team: also ends when its job process has ended; NULL: does not check that. */
static int await_word(shared32 *word, uint32_t value, struct team *team)
{
    for (uint64_t end = end_of_patience(); load_acquire32(word) < value;) {
        siginfo_t info = { 0 };
        bool over = team && team->job
            && waitid(P_PID, (id_t)team->job, &info, WEXITED | WNOHANG | WNOWAIT) == 0
            && info.si_pid;
        if (over || clock_ns() > end)
            return load_acquire32(word) >= value ? 0 : -1;
        uint32_t seen = load_acquire32(word);
        if (seen < value)
            futex_wait(word, seen, SLICE_NS);
    }
    return 0;
}

static void raise_word(shared32 *word, uint32_t value)
{
    store_release32(word, value);
    futex_wake(word, INT_MAX);
}

void team_say(struct team *team, int rank, uint32_t step)
{
    raise_word(&team->rank[rank].step, step);
}

int  team_await(struct team *team, int rank, uint32_t step)
{
    return await_word(&team->rank[rank].step, step, team);
}

void team_tell(struct team *team, int rank, uint32_t what)
{
    raise_word(&team->rank[rank].told, what);
}

int  team_hear(struct team *team, int rank, uint32_t what)
{
    return await_word(&team->rank[rank].told, what, NULL);
}

pid_t team_pid(struct team *team, int rank) { return (pid_t)load_acquire32(&team->rank[rank].pid); }

bool team_is(struct team *team, int rank, const char *state)
{
    struct process_id id = { .pid = team_pid(team, rank), .tid = 0 };
    for (uint64_t end = end_of_patience(); clock_ns() < end; sched_yield())
        if (!strcmp(process_state(&id, NULL), state))
            return true;
    return false;
}

void team_note(struct team *team, int rank, tutti_comm *comm)
{
    struct team_rank *r = &team->rank[rank];
    r->failed_count = tutti_failed(comm, r->failed, TEAM_MOST);
    snprintf(r->report, sizeof r->report, "%s", tutti_explain(comm));
}

uint64_t team_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

uint64_t team_seed(void)
{
    const char *given = getenv("TUTTI_TEST_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 0) : clock_ns();
    printf("TUTTI_TEST_SEED=%" PRIu64 "\n", seed);
    return seed;
}

void team_spin(uint64_t ns)
{
    for (uint64_t end = clock_ns() + ns; clock_ns() < end;)
        cpu_pause();
}

bool team_sanitized(void) { return getenv("TUTTI_TEST_SANITIZED") != NULL; }

int team_many(const char *variable, int normal, int sanitized)
{
    const char *given = getenv(variable);
    return given ? atoi(given) : team_sanitized() ? sanitized : normal;
}
