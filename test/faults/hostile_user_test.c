/* ctest: timeout=120 labels=faults needs=vm_read */
/* Another user of the machine: who holds the names of a job does not keep it from starting, who
 * knocks is given nothing, and who looks for the arena of a running job finds no way to it. Only
 * root can become somebody else; without, the tests are skipped. */
#include "support/skip.h"
#include "support/team.h"

#include "base/text.h"
#include "group/meet.h"
#include "os/handover.h"
#include "support/scratch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { NOBODY = 65534, SIZE = 3, JOINED = 1, GO = 1, ENDED = 2 };
enum { NUMBER_OF_PIDFD_OPEN = 434, NUMBER_OF_PIDFD_GETFD = 438 };
enum holds { LISTENS, BOUND_ONLY, NEVER_ANSWERS };

static char job[64], home[64];
static char names[MEET_CANDIDATES + 1][MEET_NAME];

/* Every test is a job of its own, whose names can be guessed, as a stranger would. */
static void setup_names(void)
{
    static int nth;
    snprintf(job, sizeof job, "hostile.%d.%d", (int)getpid(), ++nth);
    for (int i = 0; i <= MEET_CANDIDATES; i++) {
        char last[8];
        snprintf(last, sizeof last, i < MEET_CANDIDATES ? "%d" : "full", i);
        snprintf(names[i], sizeof names[i], "tutti.%u.%.32s.%016llx.%s", (unsigned)getuid(), job,
                 (unsigned long long)text_hash(job, strlen(job), 0), last);
    }
}

static int setup(void **state)
{
    (void)state;
    if (geteuid() != 0) {
        printf("skipped: only root can become another user\n");
        return 0;
    }
    if (!mkdtemp(scratch_name(home, sizeof home, "home")))
        return -1;
    unsetenv("XDG_RUNTIME_DIR");
    setenv("HOME", home, 1);
    setup_names();
    return 0;
}

/* Also: nothing is left in the directory. */
static int teardown(void **state)
{
    (void)state;
    return geteuid() != 0 ? 0 : rmdir(home);
}

static void become_nobody(void)
{
    if (setgroups(0, NULL) != 0 || setgid(NOBODY) != 0 || setuid(NOBODY) != 0
        || geteuid() != NOBODY)
        _exit(9);
    prctl(PR_SET_PDEATHSIG, SIGKILL);                /* a change of user clears it */
}

/* ---- the job ---- */

static int joins(tutti_comm *world, int rank, struct team *team)
{
    struct team_rank *mine = &team->rank[rank];
    const tutti_options options = {
        .job = job, .rank = rank, .size = SIZE, .join_timeout_ms = 20000
    };
    int32_t one = 1 + rank, sum = 0;
    mine->error[0] = tutti_init(&world, &options);
    if (mine->error[0] < 0) {
        snprintf(mine->report, sizeof mine->report, "%s", tutti_explain(NULL));
        return 1;
    }
    mine->error[1] = tutti_all_reduce(&one, &sum, 1, TUTTI_I32, TUTTI_SUM, world, NULL);
    mine->number[0] = (uint64_t)sum;
    team_say(team, rank, JOINED);
    team_hear(team, rank, GO);
    mine->error[2] = tutti_barrier(world, NULL);
    mine->error[3] = tutti_finalize(world);
    return 0;
}

static void went_well(struct team *team)
{
    for (int q = 0; q < SIZE; q++)
        team_tell(team, q, GO);
    assert_int_equal(team_end(team), 0);
    for (int q = 0; q < SIZE; q++) {
        const struct team_rank *r = &team->rank[q];
        if (r->error[0])
            print_error("rank %d: %d %s\n", q, r->error[0], r->report);
        for (int i = 0; i < 4; i++)
            assert_int_equal(r->error[i], 0);
        assert_int_equal(r->number[0], 1 + 2 + 3);
    }
    team_free(team);
}

/* ---- strangers ---- */

static int bind_name(const char *name)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    size_t n = strlen(name);
    memcpy(at.sun_path + 1, name, n);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);
    if (fd < 0
        || bind(fd, (const struct sockaddr *)&at,
                (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + 1))
            != 0)
        _exit(1);
    return fd;
}

static void hold(enum holds how)
{
    for (int i = 0; i <= MEET_CANDIDATES; i++) {
        int fd = bind_name(names[i]);
        if (how != BOUND_ONLY && listen(fd, how == LISTENS ? 128 : 0) != 0)
            _exit(1);
        while (how == NEVER_ANSWERS && handover_connect(names[i]) >= 0) { }
    }
}

static struct { enum holds how; } task;

static void holds_names(int told)
{
    hold(task.how);
    if (write(told, "k", 1) != 1) _exit(1);
    for (;;) pause();
}

/* Knocks at whatever listens, says hello as rank 1, or nothing, or noise with a descriptor, for as
 * long as it lives; must never be answered. */
static void knocks(int told)
{
    struct meet_hello hello = {
        .magic = MEET_MAGIC, .bytes = sizeof hello,
        .layout_hash = layout_hash(), .rank = 1, .size = SIZE
    };
    if (write(told, "k", 1) != 1)
        _exit(1);
    for (unsigned n = 0;; n++) {
        char answer[2000];
        int got_fd = -1, fd = handover_connect(names[n % 2]);
        if (fd < 0)
            continue;
        if (n % 3)
            handover_send(fd, &hello, n % 3 == 1 ? sizeof hello : 7, n % 5 ? -1 : 1, 0);
        if (n % 16 == 0
            && (handover_recv(fd, answer, sizeof answer, &got_fd, 100) > 0 || got_fd >= 0)) {
            if (write(told, "answered", 8) < 0)
                _exit(1);
        }
        close(fd);
    }
}

static pid_t stranger(void (*body)(int told), int *told)
{
    int ends[2];
    char byte = 0;
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[0]);
        become_nobody();
        body(ends[1]);
        _exit(0);
    }
    close(ends[1]);
    assert_int_equal(read(ends[0], &byte, 1), 1);
    *told = ends[0];
    return pid;
}

static void stranger_ends(pid_t pid, int told)
{
    char byte;
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(read(told, &byte, 1), 0);       /* it had nothing more to tell */
    close(told);
}

static void job_against(enum holds how)
{
    int told;
    if (geteuid() != 0)
        skip_because("only root can become another user");
    task.how = how;
    pid_t pid = stranger(holds_names, &told);
    went_well(team_start_named(SIZE, joins, false));
    stranger_ends(pid, told);
}

static void test_who_listens(void **state) { (void)state; job_against(LISTENS); }
static void test_who_only_binds(void **state) { (void)state; job_against(BOUND_ONLY); }
static void test_who_never_answers(void **state) { (void)state; job_against(NEVER_ANSWERS); }

/* Without a directory of our own the job is refused at once, and says by whom. */
static void test_no_directory(void **state)
{
    (void)state;
    int told;
    if (geteuid() != 0)
        skip_because("only root can become another user");
    task.how = LISTENS;
    assert_int_equal(chmod(home, 0777), 0);          /* anybody can bind there */
    pid_t pid = stranger(holds_names, &told);
    struct team *team = team_start_named(SIZE, joins, false);
    assert_int_equal(team_end(team), 0);
    for (int q = 0; q < SIZE; q++) {
        assert_int_equal(team->rank[q].error[0], -EPERM);
        assert_non_null(strstr(team->rank[q].report, "is held by user 65534"));
    }
    team_free(team);
    stranger_ends(pid, told);
}

static void test_who_knocks(void **state)
{
    (void)state;
    int told;
    if (geteuid() != 0)
        skip_because("only root can become another user");
    pid_t pid = stranger(knocks, &told);
    for (int i = 0; i < 5; i++) {
        went_well(team_start_named(SIZE, joins, false));
        /* The same stranger; the same name, whose marker has gone with its job. */
    }
    stranger_ends(pid, told);
}

/* ---- looking for the arena ---- */

static pid_t victim;

static bool can_open(const char *folder)
{
    char path[64];
    bool any = false;
    snprintf(path, sizeof path, "/proc/%d/%s", (int)victim, folder);
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d)) != NULL;)
        any |= e->d_name[0] != '.' && openat(dirfd(d), e->d_name, O_RDONLY) >= 0;
    if (d)
        closedir(d);
    for (int fd = 0; fd < 300 && !strcmp(folder, "fd"); fd++) {
        snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)victim, fd);
        any |= open(path, O_RDWR) >= 0;
    }
    return any;
}

static void looks(int told)
{
    char path[64], bytes[8], what[16] = "k";
    struct iovec here = { bytes, sizeof bytes }, there = { (void *)0x10000, sizeof bytes };
    int pidfd = (int)syscall(NUMBER_OF_PIDFD_OPEN, victim, 0), n = 1;
    what[n++] = can_open("fd") ? 'f' : '-';
    what[n++] = can_open("map_files") ? 'm' : '-';
    snprintf(path, sizeof path, "/proc/%d/mem", (int)victim);
    what[n++] = open(path, O_RDONLY) >= 0 ? 'r' : '-';
    what[n++] = process_vm_readv(victim, &here, 1, &there, 1, 0) >= 0 || errno != EPERM ? 'v' : '-';
    what[n++] = ptrace(PTRACE_SEIZE, victim, NULL, NULL) == 0 ? 'p' : '-';
    bool taken = false;
    for (int fd = 0; fd < 300 && pidfd >= 0; fd++)
        taken |= syscall(NUMBER_OF_PIDFD_GETFD, pidfd, fd, 0) >= 0;
    what[n++] = taken ? 'g' : '-';
    what[n++] = kill(victim, 0) == 0 ? 'k' : '-';
    if (write(told, what, (size_t)n) != n)
        _exit(1);
}

static void test_who_looks(void **state)
{
    (void)state;
    char said[32] = { 0 };
    int told;
    if (geteuid() != 0)
        skip_because("only root can become another user");
    struct team *team = team_start_named(SIZE, joins, false);
    for (int q = 0; q < SIZE; q++)
        assert_int_equal(team_await(team, q, JOINED), 0);
    victim = team_pid(team, 1);
    pid_t pid = stranger(looks, &told);
    assert_true(read(told, said, sizeof said - 1) > 0);
    assert_string_equal(said, "-------");
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    close(told);
    went_well(team);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_who_listens), TEST(test_who_only_binds), TEST(test_who_never_answers),
        TEST(test_no_directory), TEST(test_who_knocks), TEST(test_who_looks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
