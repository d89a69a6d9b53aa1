/* ctest: timeout=300 labels=faults,nosan serial needs=robust,limit */
/* What the process around us may do, see and keep changes at any time: it locks its memory, drops
 * its user and groups, lives in another namespace of users, networks or clocks. */
#include "changed_process.h"

#include "group/comm.h"
#include "support/skip.h"
#include "watch/death.h"

#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { LOCKED_MOST = 8 << 20 };

/* ---- it locks all memory that it has and will have ---- */

static long status_kib(const char *name)
{
    char line[256];
    long kib = -1;
    FILE *f = fopen("/proc/self/status", "re");
    while (f && fgets(line, sizeof line, f))
        if (!strncmp(line, name, strlen(name)))
            kib = strtol(line + strlen(name), NULL, 10);
    if (f)
        fclose(f);
    return kib;
}

static int locks_all(int rank)
{
    (void)rank;
    return mlockall(MCL_CURRENT | MCL_FUTURE);
}

static int little_is_memory(tutti_comm *world, int rank, struct team *team)
{
    (void)team;
    (void)rank;
    long mine = status_kib("RssShmem:");
    /* three spans of 64 MiB, of which each rank has used little */
    OR_LINE(mine >= 0 && mine < 65536);
    return 0;
}

/* A user whose limit leaves some pages for books and none for a span, nor for the stack of a
 * thread: blocking calls. */
static int locked_user(tutti_comm *world, int rank, struct team *team)
{
    const struct rlimit limit = { LOCKED_MOST, LOCKED_MOST };
    const tutti_options options = { .job = changed.job, .rank = rank, .size = team->size };
    int x = 1;
    if (setrlimit(RLIMIT_MEMLOCK, &limit) || setgid(65534) || setuid(65534) || mlockall(MCL_FUTURE))
        return 2;
    int r = tutti_init(&world, &options);
    if (r < 0) {
        fprintf(stderr, "rank %d: %d %s\n", rank, r, tutti_explain(NULL));
        return 3;
    }
    OR_LINE(tutti_all_reduce(&x, &x, 1, TUTTI_I32, TUTTI_SUM, world, NULL) == 0 && x == RANKS);
    if (little_is_memory(world, rank, team))
        return 4;
    return tutti_finalize(world);
}

/* The same without a page left: said, and not tried again until a deadline. */
static int locked_out(tutti_comm *world, int rank, struct team *team)
{
    const struct rlimit limit = { 0, 0 };
    const tutti_options options = {
        .job = changed.job, .rank = rank, .size = team->size, .join_timeout_ms = -1
    };
    if (setgid(65534) || setuid(65534) || mlockall(MCL_FUTURE) || setrlimit(RLIMIT_MEMLOCK, &limit))
        return 2;
    int r = tutti_init(&world, &options);
    if (r < 0 && strstr(tutti_explain(NULL), "mlockall"))
        return 0;
    fprintf(stderr, "rank %d: %d %s\n", rank, r, tutti_explain(NULL));
    return 3;
}

static void test_locks_all(void **state)
{
    (void)state;
    team_body *const bodies[] = { locked_user, locked_out };
    if (geteuid() != 0)
        skip_because("only root can lose rights");
    changed_through((struct change){ .before = locks_all, .after = little_is_memory }, NULL, NULL);
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
        snprintf(changed.job, sizeof changed.job, "acts-locked-%d-%zu", (int)getpid(), i);
        struct team *team = team_start_named(bodies[i] == locked_out ? 1 : RANKS, bodies[i], true);
        int hung = team_end(team);
        for (int r = 0; r < team->size; r++)
            if (hung || team->status[r])
                fail_msg("rank %d ended with status 0x%x\n%s", r, (unsigned)team->status[r],
                         team_stderr(team));
        team_free(team);
    }
}

/* ---- it gives its rights away ---- */

static int becomes_another(tutti_comm *world, int rank, struct team *team)
{
    (void)team;
    gid_t group = 65534 - (gid_t)rank;
    if (rank == 1)
        OR_LINE(prctl(PR_SET_DUMPABLE, 0) == 0);
    else
        OR_LINE(setgid(group) == 0 && setuid(group) == 0);
    return 0;
}

static void test_drops_privileges(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip_because("only root can lose rights");
    changed_through((struct change){ .after = becomes_another, .no_files = true }, NULL, NULL);
    changed_through((struct change){ .after = becomes_another, .no_files = true }, changed_pulls,
                    NULL);
}

/* ---- it lives in a namespace of its own ---- */

static struct { int flags; unsigned who; const char *file, *text; } apart;

/* Namespaces of time and processes are for children: the rank is a child from here on, and whoever
 * it was ends as it does. */
static int goes_apart(int rank)
{
    int status;
    if (!(apart.who >> rank & 1))
        return 0;
    if (unshare(apart.flags))
        return -1;
    int fd = apart.file ? open(apart.file, O_WRONLY | O_CLOEXEC) : -1;
    if (apart.file && (fd < 0 || write(fd, apart.text, strlen(apart.text)) < 0))
        return -1;
    close(fd);
    pid_t pid = fork();
    if (pid == 0)
        return prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        _exit(9);
    if (WIFSIGNALED(status))
        raise(WTERMSIG(status));
    _exit(WEXITSTATUS(status));
}

static bool can_go_apart(int flags)
{
    pid_t pid = fork();
    int status = 1;
    if (pid == 0)
        _exit(unshare(flags) != 0);
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

/* A life lasts for seconds, whatever the clocks show. */
static int figures_are_of_now(tutti_comm *world, int rank, struct team *team)
{
    (void)team;
    const uint64_t minutes = UINT64_C(600000000000);
    tutti_figures f;
    OR_LINE(tutti_stats(world, &f) == 0);
    OR_LINE(f.wait_ns < minutes && f.fold_ns < minutes);
    for (uint32_t p = 0; p < RANKS; p++)
        if ((int)p != rank)
            OR_LINE(!death_without_mark(&world->world->whole->watch, p, true));
    return 0;
}

static void test_other_clock(void **state)
{
    (void)state;
    enum { NEW_TIME = 0x80 };                        /* CLONE_NEWTIME, which some headers lack */
    if (!can_go_apart(NEW_TIME))
        skip_because("no namespace of clocks can be made here");
    for (unsigned who = 1; who < 1u << RANKS; who++) {
        apart.flags = NEW_TIME;
        apart.who = who;
        apart.file = "/proc/self/timens_offsets";
        apart.text = who % 2 ? "monotonic 100000 5000\nboottime 100000 5000\n"
                             : "monotonic 2 0\nboottime 2 0\n";
        changed_through((struct change){ .before = goes_apart, .after = figures_are_of_now }, NULL,
                        NULL);
    }
}

static void test_other_user_namespace(void **state)
{
    (void)state;
    if (geteuid() != 0 || !can_go_apart(CLONE_NEWUSER))
        skip_because("no namespace of users can be made here, or not by root");
    apart.flags = CLONE_NEWUSER;
    apart.who = 1u << 1;
    apart.file = "/proc/self/uid_map";
    apart.text = "0 0 1\n";
    changed_through((struct change){ .before = goes_apart }, NULL, NULL);
    changed_through((struct change){ .before = goes_apart }, changed_pulls, NULL);
}

/* Names of sockets are of a network namespace; a path is not. */
static void test_other_network(void **state)
{
    (void)state;
    char path[100];
    if (!can_go_apart(CLONE_NEWNET))
        skip_because("no namespace of networks can be made here");
    snprintf(path, sizeof path, "%s/meet", changed.folder);
    setenv("TUTTI_MEET", path, 1);
    apart.flags = CLONE_NEWNET;
    apart.file = NULL;
    for (apart.who = 1; apart.who < 1u << RANKS; apart.who++)
        changed_through((struct change){ .before = goes_apart }, NULL, NULL);
    unsetenv("TUTTI_MEET");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_locks_all), cmocka_unit_test(test_drops_privileges),
        cmocka_unit_test(test_other_user_namespace), cmocka_unit_test(test_other_network),
        cmocka_unit_test(test_other_clock),
    };
    return cmocka_run_group_tests(tests, changed_begin, changed_end);
}
