/* ctest: timeout=120 labels=faults */
/* The meeting seen from the socket: strangers, other builds, silence and noise. Whatever knocks,
 * the ranks that belong meet. */
#include "group/meet.h"

#include "arena/offsets.h"
#include "join_fixture.h"
#include "os/handover.h"
#include "support/scratch.h"
#include "support/skip.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NOBODY = 65534 };

static void host_of(int size)
{
    start_rank(0, 0, size);
    assert_true(joiners_sits(&joiners, 0, 0));
}

/* A connection to the host; its name is the first candidate. */
static int knock(void)
{
    char name[128];
    snprintf(name, sizeof name, "%s.0", job_name);
    int fd = handover_connect(name);
    assert_true(fd >= 0);
    return fd;
}

static struct meet_hello hello_of(int rank, int size)
{
    struct meet_hello hello = {
        .magic = MEET_MAGIC, .bytes = sizeof hello, .layout_hash = layout_hash(), .rank = rank,
        .size = size, .pid = (int32_t)getpid()
    };
    snprintf(hello.version, sizeof hello.version, "%s", arena_version());
    return hello;
}

static struct meet_answer ask(int fd, const struct meet_hello *hello, int *arena_fd)
{
    struct meet_answer answer;
    assert_int_equal(handover_send(fd, hello, sizeof *hello, -1, 10000), 0);
    assert_int_equal(handover_recv(fd, &answer, sizeof answer, arena_fd, 10000), sizeof answer);
    assert_int_equal(answer.magic, MEET_MAGIC);
    return answer;
}

static void expect_refusal(struct meet_hello hello, int error, const char *part)
{
    int fd = knock(), arena_fd;
    struct meet_answer answer = ask(fd, &hello, &arena_fd);
    assert_int_equal(answer.status, error);
    assert_int_equal(arena_fd, -1);
    if (!strstr(answer.text, part))
        print_error("the host says \"%s\", not \"%s\"\n", answer.text, part);
    assert_non_null(strstr(answer.text, part));
    close(fd);
}

static void test_refusals(void **state)
{
    (void)state;
    struct meet_hello hello;
    host_of(2);
    hello = hello_of(1, 2), hello.layout_hash ^= 1;
    expect_refusal(hello, -EPROTO, "two builds of tutti in one job");
    hello = hello_of(1, 2), hello.layout_hash ^= 1;
    expect_refusal(hello, -EPROTO, "; the host has it from /");
    hello = hello_of(1, 2), strcpy(hello.version, "99.0");
    expect_refusal(hello, -EPROTO, "rank 1 has 99.0");
    hello = hello_of(1, 2), memset(hello.version, 'v', sizeof hello.version);
    expect_refusal(hello, -EPROTO, "two builds");
    hello = hello_of(1, 2), hello.magic++;
    expect_refusal(hello, -EPROTO, "does not understand");
    hello = hello_of(1, 2), hello.bytes--;
    expect_refusal(hello, -EPROTO, "does not understand");
    expect_refusal(hello_of(2, 2), -EINVAL, "rank 2 does not exist");
    expect_refusal(hello_of(-1, 2), -EINVAL, "rank -1 does not exist");
    expect_refusal(hello_of(1, 4), -EPROTO, "this job has 2 ranks, you said 4");
    expect_refusal(hello_of(0, 2), -EEXIST, "rank 0 has joined already (pid ");
    start_rank(1, 1, 2);
    expect_report(0, 0);
    expect_report(1, 0);
}

/* A child of another user that binds names, or knocks and says hello, and stays until it
 * is killed. */
static pid_t stranger(const char *const names[], int n, bool knocks)
{
    int ends[2];
    char byte = 0;
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        if (setuid(NOBODY) != 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) != 0)
            _exit(1);
        for (int i = 0; i < n; i++) {
            struct meet_hello hello = hello_of(1, 2);
            int fd = knocks ? handover_connect(names[i]) : handover_listen(names[i]);
            if (fd < 0)
                _exit(1);
            if (knocks)                     /* it asks for rank 1, and must not have the offer */
                handover_send(fd, &hello, sizeof hello, -1, 1000);
        }
        if (write(ends[1], "k", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    close(ends[1]);
    assert_int_equal(read(ends[0], &byte, 1), 1);
    close(ends[0]);
    return pid;
}

static void end_stranger(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

/* Those who wait in vain learn who was not let in, from whoever hosts: also from the next host,
   whom the first one's guest becomes. Who has come since is not among them. */
static void expect_refused(int rank, const char *const parts[])
{
    struct join_request r = joiners_request(job_name, rank, 4);
    r.timeout_ms = 300;
    joiners_start(&joiners, rank, &r);
    const char *why = expect_report(rank, -ETIMEDOUT)->why;
    for (int i = 0; parts[i]; i++) {
        bool wanted = parts[i][0] != '!';
        if (!strstr(why, parts[i] + !wanted) == wanted)
            fail_msg("\"%s\" is %sin \"%s\"", parts[i] + !wanted, wanted ? "not " : "", why);
    }
}

static void test_says_who_was_refused(void **state)
{
    (void)state;
    struct meet_hello hello;
    char name[128];
    pid_t pid = 0;
    host_of(4);
    hello = hello_of(3, 4), strcpy(hello.version, "99.0");
    expect_refusal(hello, -EPROTO, "two builds");
    hello = hello_of(2, 4), hello.magic++;
    expect_refusal(hello, -EPROTO, "does not understand");
    expect_refusal(hello_of(1, 7), -EPROTO, "this job has 4 ranks");
    expect_refusal(hello_of(0, 4), -EEXIST, "rank 0 has joined already");
    expect_refusal(hello_of(9, 4), -EINVAL, "rank 9 does not exist");
    snprintf(name, sizeof name, "%s.0", job_name);
    if (geteuid() == 0)
        pid = stranger((const char *const[]){ name }, 1, true);
    expect_refused(1,
                   (const char *const[]){ "ranks 2, 3 did not come", "; refused: rank 3 (pid ",
                                          "which has another build of tutti, 99.0",
                                          "who greets as no tutti", "a second rank 0 (pid ",
                                          "rank 9 (pid ", "!there are 7 ranks", NULL });
    start_rank(2, 2, 4);                /* it waits on, and so does rank 0: one of them hosts now */
    assert_true(joiners_sits(&joiners, 0, 2));
    expect_refused(3,
                   (const char *const[]){
                       "rank 1 did not come", "rank 1 (pid ", "which says that there are 7 ranks",
                       "a second rank 0 (pid ", geteuid() == 0 ? "user 65534 (pid " : "", "!99.0",
                       NULL });
    if (pid)
        end_stranger(pid);
    start_rank(1, 1, 4);
    start_rank(3, 3, 4);
    for (int p = 0; p < 4; p++)
        expect_report(p, 0);
}

/* A seat is offered on one connection at a time; when that ends, the rank may come again. */
static void test_offer(void **state)
{
    (void)state;
    int arena_fd;
    host_of(2);
    for (int i = 0; i < 20; i++) {
        struct meet_hello hello = hello_of(1, 2);
        int fd = knock();
        assert_int_equal(ask(fd, &hello, &arena_fd).status, 0);
        assert_true(arena_fd >= 0);
        expect_refusal(hello_of(1, 2), -EEXIST, "rank 1 is joining already (pid ");
        close(arena_fd);
        close(fd);
    }
    start_rank(1, 1, 2);
    expect_report(0, 0);
    expect_report(1, 0);
}

/* Silence, noise, messages too long or too many, and leaving in the middle. */
static void test_noise(void **state)
{
    (void)state;
    int silent[8], arena_fd;
    char noise[4096];
    host_of(2);
    srand(3);
    for (size_t i = 0; i < 8; i++)
        silent[i] = knock();
    for (int i = 0; i < joiners_prove(200, 20000); i++) {
        int fd = knock();
        size_t n = (size_t)(rand() % (int)sizeof noise) + 1;
        struct meet_hello hello = hello_of(rand() % 4 - 1, rand() % 4);
        for (size_t at = 0; at < n; at++)
            noise[at] = (char)rand();
        if (rand() % 2)
            memcpy(noise, &hello, sizeof hello);
        handover_send(fd, noise, rand() % 3 ? n : sizeof hello, rand() % 2 ? STDERR_FILENO : -1,
                      1000);
        if (rand() % 2) {
            struct meet_answer answer;
            if (handover_recv(fd, &answer, sizeof answer, &arena_fd, 5000) > 0 && arena_fd >= 0)
                close(arena_fd);
        }
        close(fd);
    }
    start_rank(1, 1, 2);
    expect_report(0, 0);
    expect_report(1, 0);
    for (size_t i = 0; i < 8; i++)
        close(silent[i]);
}

/* A rank that was handed the arena and sat, and whose process goes on with its connection closed,
 * is a rank that broke off. */
static void test_closed_after_sitting(void **state)
{
    (void)state;
    char room[256];
    struct text why = TEXT_IN(room);
    struct arena arena;
    struct seat_card card;
    int arena_fd, fd;
    host_of(3);
    fd = knock();
    struct meet_hello hello = hello_of(1, 3);
    assert_int_equal(ask(fd, &hello, &arena_fd).status, 0);
    assert_int_equal(arena_attach(&arena, arena_fd, &why), 0);
    seat_card(&card, 0);
    assert_int_equal(seat_take(&arena, 1, &card, &why), 0);
    close(fd);
    expect_text(0, -EOWNERDEAD, "rank 1 (pid ");
    seat_leave(&arena, 1);
    arena_detach(&arena);
}

/* ---- other users ---- */

static void test_stranger_on_some_names(void **state)
{
    (void)state;
    char one[128], two[128];
    if (geteuid() != 0)
        skip_because("only root can become another user");
    snprintf(one, sizeof one, "%s.0", job_name);
    snprintf(two, sizeof two, "%s.1", job_name);
    pid_t pid = stranger((const char *const[]){ one, two }, 2, false);
    for (int p = 0; p < 4; p++)
        start_rank(p, p, 4);
    for (int p = 0; p < 4; p++)
        expect_report(p, 0);
    joiners_let_go(&joiners);
    struct join_request r = joiners_request(job_name, 0, 2);
    r.timeout_ms = 100;
    joiners_start(&joiners, 0, &r);
    expect_text(0, -ETIMEDOUT, "is held by user 65534)");
    end_stranger(pid);
}

static void test_stranger_on_all_names(void **state)
{
    (void)state;
    char names[MEET_CANDIDATES][128];
    const char *list[MEET_CANDIDATES];
    if (geteuid() != 0)
        skip_because("only root can become another user");
    for (int i = 0; i < MEET_CANDIDATES; i++) {
        snprintf(names[i], sizeof names[i], "%s.%d", job_name, i);
        list[i] = names[i];
    }
    setenv("HOME", "/nonexistent", 1);               /* else a path in there is left */
    unsetenv("XDG_RUNTIME_DIR");
    pid_t pid = stranger(list, MEET_CANDIDATES, false);
    start_rank(0, 0, 2);
    expect_text(0, -EPERM, "is another user's");
    end_stranger(pid);
}

static void test_stranger_knocks(void **state)
{
    (void)state;
    char name[128];
    if (geteuid() != 0)
        skip_because("only root can become another user");
    host_of(2);
    snprintf(name, sizeof name, "%s.0", job_name);
    pid_t pid = stranger((const char *const[]){ name }, 1, true);
    start_rank(1, 1, 2);
    expect_report(0, 0);
    expect_report(1, 0);
    end_stranger(pid);
}

/* ---- a host that dies before it has answered ---- */

enum { KNOCKED, LET_IN, HEARD, STEPS };

static void say_pid(int fd, pid_t pid)
{
    if (write(fd, &pid, sizeof pid) != sizeof pid)
        _exit(1);
}

static pid_t hear_pid(int fd)
{
    pid_t pid = 0;
    assert_int_equal(read(fd, &pid, sizeof pid), sizeof pid);
    return pid;
}

/* A host by hand that comes to this step with whoever knocks, and to nothing further. held: a fork
   of it has its sockets, and lives on. Says when it listens, and at the step; then the fork's
   number, or 0. */
static pid_t silent_host(int step, bool held, int *heard)
{
    int ends[2];
    char name[128];
    snprintf(name, sizeof name, "%s.0", job_name);
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct meet_hello hello;
        int none, listener = handover_listen(name), fd = -1;
        struct pollfd p = { listener, POLLIN, 0 };
        say_pid(ends[1], getpid());
        if (listener < 0 || poll(&p, 1, -1) != 1
            || (step >= LET_IN && (fd = handover_accept(listener)) < 0))
            _exit(1);
        if (step >= HEARD && handover_recv(fd, &hello, sizeof hello, &none, -1) != sizeof hello)
            _exit(1);
        pid_t fork_of_it = held ? fork() : 0;
        if (!held || fork_of_it > 0)
            say_pid(ends[1], fork_of_it);
        alarm(100);                                  /* a fork outlives the test, if that fails */
        for (;;)
            pause();
    }
    close(ends[1]);
    *heard = ends[0];
    assert_int_equal(hear_pid(*heard), pid);
    return pid;
}

static void until_asleep(pid_t pid)
{
    const struct process_id id = { .pid = pid, .tid = pid };
    for (int asleep = 0; asleep < 3; sched_yield())
        asleep = strcmp(process_state(&id, NULL), "sleeping") == 0 ? asleep + 1 : 0;
}

static void test_host_dies_unheard(void **state)
{
    (void)state;
    for (int i = 0; i < 2 * STEPS; i++) {
        int heard;
        char who[64];
        joiners_name(job_name, "meet");     /* the fork of the last round may not have ended yet */
        pid_t host = silent_host(i / 2, i % 2, &heard);
        struct join_request r = joiners_request(job_name, 0, 2);
        r.timeout_ms = -1;                           /* no deadline may stand in for the noticing */
        joiners_start(&joiners, 0, &r);
        pid_t holder = hear_pid(heard);
        close(heard);
        /* by now it waits for the answer; before, it would take the name for nobody's */
        until_asleep(joiners.pid[0]);
        end_stranger(host);
        snprintf(who, sizeof who, "(pid %d) died while the ranks were joining", (int)host);
        expect_text(0, -EOWNERDEAD, who);
        joiners_let_go(&joiners);
        for (int p = 0; p < 2; p++)
            start_rank(p, p, 2);                    /* nor does it stand in the next job's way */
        for (int p = 0; p < 2; p++)
            expect_report(p, 0);
        joiners_let_go(&joiners);
        if (holder > 0)
            kill(holder, SIGKILL);
    }
}

/* ---- a path ---- */

static void test_path(void **state)
{
    (void)state;
    char directory[64];
    struct stat st;
    assert_non_null(mkdtemp(scratch_name(directory, sizeof directory, "meet")));
    snprintf(job_name, sizeof job_name, "%s/socket", directory);
    for (int round = 0, hosts = 0; round < 3; round++, hosts = 0) {
        for (int p = 0; p < 4; p++)
            start_rank(p, p, 4);
        for (int p = 0; p < 4; p++)
            hosts += expect_report(p, 0)->hosted;
        assert_int_equal(hosts, 1);
        assert_int_not_equal(stat(job_name, &st), 0);         /* gone once all have joined */
        joiners_let_go(&joiners);
        host_of(2);                                  /* killed while it hosts: its socket stays … */
        joiners_kill(&joiners, 0);
        assert_int_equal(stat(job_name, &st), 0);   /* … and the next job removes it */
    }
    unlink(job_name);
    assert_int_equal(rmdir(directory), 0);
}

static void test_path_failures(void **state)
{
    (void)state;
    char directory[64];
    assert_non_null(mkdtemp(scratch_name(directory, sizeof directory, "meet")));
    snprintf(job_name, sizeof job_name, "%s/socket", directory);
    struct join_request r = joiners_request(job_name, 0, 2);
    r.timeout_ms = 100;
    joiners_start(&joiners, 0, &r);
    expect_report(0, -ETIMEDOUT);
    assert_int_equal(rmdir(directory), 0);           /* no socket was left */
    start_rank(0, 0, 2);
    struct joiners_report *report = expect_report(0, -ENOENT);
    assert_true(report->why[0] != 0);
    char long_path[200];
    memset(long_path, '/', sizeof long_path - 1);
    long_path[sizeof long_path - 1] = 0;
    r.name = long_path;
    joiners_start(&joiners, 0, &r);
    expect_report(0, -ENAMETOOLONG);
}

int main(void)
{
#define OF(test) cmocka_unit_test_setup_teardown(test, join_setup, join_teardown)
    const struct CMUnitTest tests[] = {
        OF(test_refusals), OF(test_says_who_was_refused), OF(test_offer), OF(test_noise),
        OF(test_closed_after_sitting), OF(test_stranger_on_some_names),
        OF(test_stranger_on_all_names), OF(test_stranger_knocks), OF(test_host_dies_unheard),
        OF(test_path), OF(test_path_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
