/* ctest: timeout=300 labels=faults serial needs=robust */
/* Ranks that are not where or what the system's quick signs expect: whose list of robust locks
 * another library has replaced, in pid namespaces of their own, without /proc; and ranks whose
 * launcher is killed alone. They join and work all the same, and deaths are met. */
#include "environment.h"

#include "arena/arena.h"
#include "base/clock.h"
#include "support/robust_list.h"
#include "support/skip.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { RANKS = 4, VICTIM = 1, PATIENCE_MS = 60000 };

static struct { char job[64]; int join_ms; bool own_proc, no_proc; unsigned apart; } scene;

static int start_world(tutti_comm **world, int rank, struct team *team)
{
    const tutti_options options = {
        .job = scene.job, .rank = rank, .size = team->size, .join_timeout_ms = scene.join_ms
    };
    return team->rank[rank].error[ENV_INIT] = tutti_init(world, &options);
}

static struct team *start_named(team_body *body)
{
    snprintf(scene.job, sizeof scene.job, "%s", env_job());
    return team_start_named(RANKS, body, true);
}

/* ---- a replaced list of robust locks: the kernel marks nothing ---- */

static int replaces_after_init(tutti_comm *world, int rank, struct team *team)
{
    robust_list_replace();
    return env_life(world, rank, team, VICTIM, env_killed);
}

static int replaces_before_init(tutti_comm *world, int rank, struct team *team)
{
    robust_list_replace();
    start_world(&world, rank, team);
    return env_life(world, rank, team, VICTIM, env_stays);
}

static void a_replaced_robust_list(void **state)
{
    (void)state;
    struct env_traces before;
    env_look(&before);
    env_see_through(team_start(RANKS, replaces_after_init, true), VICTIM, "signal 9");
    env_kill_through(start_named(replaces_before_init), VICTIM, "signal 9");
    env_expect_nothing_new(&before);
}

/* Has that rank its seat? Looked at from outside, as `tutti ps` would: by the arena among
 * its descriptors. */
static bool sits(pid_t pid, int rank)
{
    char path[64], target[64], said[256];
    struct text why = TEXT_IN(said);
    bool there = false;
    for (int fd = 0; fd < 256 && !there; fd++) {
        struct arena arena;
        snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)pid, fd);
        ssize_t n = readlink(path, target, sizeof target - 1);
        target[n > 0 ? n : 0] = 0;
        int own = strstr(target, "memfd:tutti") ? open(path, O_RDONLY | O_CLOEXEC) : -1;
        if (own >= 0 && arena_attach_readonly(&arena, own, &why) == 0) {
            there = load_acquire32(&arena.seats[rank].state) == SEAT_JOINED;
            arena_detach(&arena);
        } else if (own >= 0)
            close(own);
    }
    return there;
}

/* Rank 3 does not come; one of the others dies while it waits for it, and no mark says so. */
static int joins_without_a_mark(tutti_comm *world, int rank, struct team *team)
{
    if (rank == 3) {
        team_hear(team, rank, ENV_END);
        return 0;
    }
    robust_list_replace();
    start_world(&world, rank, team);
    return env_life(world, rank, team, VICTIM, env_killed);
}

static void a_replaced_robust_list_while_joining(void **state)
{
    (void)state;
    struct env_traces before;
    env_look(&before);
    for (int victim = 0; victim < 3; victim++) {
        struct team *team = start_named(joins_without_a_mark);
        char named[32];
        snprintf(named, sizeof named, "rank %d", victim);
        for (int r = 0; r < 3; r++)
            for (uint64_t end = clock_ns() + PATIENCE_MS * UINT64_C(1000000);
                 !team_pid(team, r) || !sits(team_pid(team, r), r);) {
                assert_true(clock_ns() < end);
                sched_yield();
            }
        assert_int_equal(kill(team_pid(team, victim), SIGKILL), 0);
        for (int r = 0; r < 3; r++)
            if (r != victim)
                assert_int_equal(team_await(team, r, ENV_BACK), 0);
        team_tell(team, 3, ENV_END);
        assert_int_equal(team_end(team), 0);
        for (int r = 0; r < 3; r++) {
            const struct team_rank *rank = &team->rank[r];
            if (r != victim
                && (team->status[r] || rank->error[ENV_INIT] != -EOWNERDEAD
                    || !strstr(rank->report, named)))
                fail_msg("rank %d got %d: %s", r, rank->error[ENV_INIT], rank->report);
        }
        team_free(team);
    }
    env_expect_nothing_new(&before);
}

/* ---- pid namespaces, and no /proc ---- */

/* Another /proc in a mount namespace of one's own: that of the pid namespace, or none. */
static int arrange_proc(void)
{
    if (!scene.own_proc && !scene.no_proc)
        return 0;
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
        return -errno;
    return mount(scene.own_proc ? "proc" : "tmpfs", "/proc", scene.own_proc ? "proc" : "tmpfs", 0,
                 NULL)
            == 0
        ? 0
        : -errno;
}

static int lives_here(int rank, struct team *team)
{
    tutti_comm *world = NULL;
    if (arrange_proc())
        return 9;
    start_world(&world, rank, team);
    return env_life(world, rank, team, VICTIM, env_stays);
}

/* The rank is a child, the first process of a pid namespace, and cannot be killed from inside; the
 * parent shows its number out here. */
static int lives_apart(tutti_comm *world, int rank, struct team *team)
{
    (void)world;
    int status = 0;
    if (!(scene.apart & 1u << rank))
        return lives_here(rank, team);
    if (unshare(CLONE_NEWPID) != 0)
        return 9;
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        _exit(lives_here(rank, team));
    }
    store_release32(&team->rank[rank].pid, (uint32_t)pid);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) { }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 0;
}

/* May we? In a child, so that nothing of it stays. */
static void need_namespaces(void)
{
    int status = 0;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        _exit(unshare(CLONE_NEWPID | CLONE_NEWNS) != 0
              || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0
              || mount("tmpfs", "/proc", "tmpfs", 0, NULL) != 0);
    waitpid(pid, &status, 0);
    if (status)
        skip_because("no namespaces of pids and mounts can be made here");
}

static void apart(unsigned which, bool own_proc, bool no_proc)
{
    struct env_traces before;
    need_namespaces();
    env_look(&before);
    scene.apart = which;
    scene.own_proc = own_proc;
    scene.no_proc = no_proc;
    env_kill_through(start_named(lives_apart), VICTIM, "died");
    env_expect_nothing_new(&before);
}

static void each_in_a_pid_namespace_of_its_own(void **state)
{
    (void)state;
    apart(0xf, false, false);               /* /proc is the outer one: its numbers are not ours */
    apart(0xf, true, false);
}

static void one_in_a_pid_namespace_of_its_own(void **state)
{
    (void)state;
    for (int r = 0; r < RANKS; r++)
        apart(1u << r, r % 2, false);
}

static void without_proc(void **state)
{
    (void)state;
    apart(0, false, true);
}

static void without_proc_in_pid_namespaces(void **state)
{
    (void)state;
    apart(0xf, false, true);
    apart(0xf & ~(1u << VICTIM), false, true);      /* its number means nobody to the others */
}

/* ---- the launcher is killed alone ---- */

/* Started by `tutti run` as "PROGRAM rank HOW": says by a byte that it is there, and is asleep in a
   barrier when its launcher is killed; or it ignores SIGTERM, sees its launcher go, and finishes
   what it has to do, which it says by another byte. */
static int plays_rank(const char *how)
{
    tutti_comm *world;
    pid_t launcher = getppid();
    bool stays = !strcmp(how, "stays");
    int fd = atoi(getenv("ENV_PIPE"));
    if (stays)
        signal(SIGTERM, SIG_IGN);
    if (tutti_init(&world, NULL) < 0 || env_course(world))
        return 1;
    if (write(fd, "r", 1) != 1)
        return 2;
    if (!stays && tutti_rank(world) == 0)
        for (;;)
            pause();                                 /* the others wait for it in the barrier */
    while (stays && getppid() == launcher)
        sched_yield();
    if (tutti_barrier(world, NULL) < 0 || env_course(world) || tutti_finalize(world) < 0)
        return 3;
    return write(fd, "f", 1) == 1 ? 0 : 4;
}

static int ranks_by_launcher(const char *how, pid_t *launcher)
{
    int ends[2];
    char command[512], program[512], number[16];
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    assert_true(n > 0 && pipe(ends) == 0);
    program[n] = 0;
    snprintf(command, sizeof command, "%s/tutti", getenv("TUTTI_BUILD"));
    snprintf(number, sizeof number, "%d", ends[1]);
    fflush(NULL);
    *launcher = fork();
    if (*launcher == 0) {
        close(ends[0]);
        setenv("ENV_PIPE", number, 1);
        execl(command, command, "run", "-n", "3", program, "rank", how, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    return ends[0];
}

/* The next byte of a rank; 0: all who could write one have ended; -1: nothing for a minute. */
static int next_byte(int fd)
{
    char byte = 0;
    struct pollfd p = { fd, POLLIN, 0 };
    if (poll(&p, 1, PATIENCE_MS) != 1)
        return -1;
    return read(fd, &byte, 1) == 1 ? byte : 0;
}

static void the_launcher_is_killed(const char *how, int finished, int ended_by)
{
    struct env_traces before;
    pid_t launcher;
    int status, byte, reaped = 0, end = 0;
    if (!getenv("TUTTI_BUILD"))
        skip_because("TUTTI_BUILD does not say where the command is");
    env_look(&before);
    int fd = ranks_by_launcher(how, &launcher);
    for (int r = 0; r < 3; r++)
        assert_int_equal(next_byte(fd), 'r');
    assert_int_equal(kill(launcher, SIGKILL), 0);
    while ((byte = next_byte(fd)) > 0)
        end += byte == 'f';
    assert_int_equal(byte, 0);                       /* they have all ended */
    close(fd);
    assert_int_equal(end, finished);
    assert_int_equal(waitpid(launcher, &status, 0), launcher);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    while (waitpid(-1, &status, 0) > 0) {            /* orphans come to us */
        reaped++;
        if (ended_by ? !WIFSIGNALED(status) || WTERMSIG(status) != ended_by : status != 0)
            fail_msg("a rank ended with 0x%x", (unsigned)status);
    }
    assert_int_equal(reaped, 3);
    env_expect_nothing_new(&before);
}

static void the_launcher_is_killed_and_its_ranks_end(void **state)
{
    (void)state;
    the_launcher_is_killed("sleeps", 0, SIGTERM);
}

static void the_launcher_is_killed_and_its_ranks_go_on(void **state)
{
    (void)state;
    the_launcher_is_killed("stays", 3, 0);
}

int main(int argc, char *argv[])
{
    if (argc == 3 && !strcmp(argv[1], "rank"))
        return plays_rank(argv[2]);
    env_adopt();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_replaced_robust_list),
        cmocka_unit_test(a_replaced_robust_list_while_joining),
        cmocka_unit_test(each_in_a_pid_namespace_of_its_own),
        cmocka_unit_test(one_in_a_pid_namespace_of_its_own), cmocka_unit_test(without_proc),
        cmocka_unit_test(without_proc_in_pid_namespaces),
        cmocka_unit_test(the_launcher_is_killed_and_its_ranks_end),
        cmocka_unit_test(the_launcher_is_killed_and_its_ranks_go_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
