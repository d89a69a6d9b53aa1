/* Who borrows the launcher's memory until its exec, and what becomes of the launcher when such a
 * child ends by a signal that dumps core: it lives where the kernel is new enough, and elsewhere no
 * rank borrows. */
#include "launch/start.h"
#include "os/checked.h"
#include "os/release.h"
#include "support/skip.h"

#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { LENT = 10, OWN, WRONG, STACK_BYTES = 32768 };

static int borrowers;

/* In place of libc's, for start_rank: so many would have borrowed the memory. */
pid_t vfork(void)
{
    borrowers++;
    return fork();
}

/* A launcher of one rank. */
static int launches(bool old, bool few)
{
    static struct program program;
    static struct signals signals;
    static char word[] = "true";
    char *argv[] = { word, NULL };
    struct job job = { .size = 1, .argv = argv };
    struct program_world world = { open("/dev/null", O_RDONLY), 1, "run", 0 };
    struct start s = { .arena_fd = world.arena_fd, .bind = JOB_BIND_NONE, .signals = &signals,
                       .few = few };
    struct start_failure failure;
    int status = -1, said;
    if ((old && personality(UNAME26) < 0) || signals_begin(&signals) < 0 || start_begin(&s) < 0
        || getrlimit(RLIMIT_NOFILE, &s.descriptors) < 0
        || program_find(program.path, sizeof program.path, word) < 0
        || program_make(&program, &job, &world) < 0)
        return WRONG;
    pid_t pid = start_rank(&s, &program, 0, -1, -1);
    bool lent = s.borrowed || borrowers;
    start_all_done(&s);
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
        return WRONG;
    while ((said = start_failed(&s, &failure)) == 0)
        usleep(100);
    if (said > 0 || s.borrowed)
        return WRONG;
    start_end(&s);
    program_free(&program);
    return lent ? LENT : OWN;
}

static int launcher(bool old, bool few)
{
    int status;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0)
        _exit(launches(old, few));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void test_old_kernels_lend_nothing(void **state)
{
    (void)state;
    assert_int_equal(launcher(true, true), OWN);     /* 2.6, as setarch --uname-2.6 has it */
    assert_int_equal(launcher(true, false), OWN);
    int now = launcher(false, true);
    assert_true(now == OWN || (now == LENT && release_since(5, 16, false)));
    assert_int_equal(launcher(false, false), release_since(5, 16, false) ? LENT : OWN);
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    if (release_since(5, 16, false) && !checked_by_memcheck())
        assert_int_equal(now, LENT);
#endif
}

static int dumps(void *arg)
{
    (void)arg;
    kill(getpid(), SIGABRT);
    return 0;
}

static int lends_to_one_that_dumps(void)
{
    static _Alignas(16) char stack[STACK_BYTES];
    struct rlimit most;
    int status = 0;
    if (getrlimit(RLIMIT_CORE, &most) == 0) {
        most.rlim_cur = most.rlim_max;
        setrlimit(RLIMIT_CORE, &most);
    }
    pid_t pid = clone(dumps, stack + sizeof stack, CLONE_VM | SIGCHLD, NULL);
    if (pid < 0)
        return OWN;
    return waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT
        ? LENT
        : WRONG;
}

static void test_a_dump_leaves_the_launcher(void **state)
{
    int status;
    char folder[] = "/tmp/tutti_start_XXXXXX";
    (void)state;
    if (!release_since(5, 16, false))
        skip_because("before Linux 5.16 a dump takes along who shares the memory");
    assert_non_null(mkdtemp(folder));
    pid_t pid = fork();
    if (pid == 0)                                    /* a file named core may be left there */
        _exit(chdir(folder) == 0 ? lends_to_one_that_dumps() : WRONG);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_true(WEXITSTATUS(status) == LENT || WEXITSTATUS(status) == OWN);
    char line[80];
    snprintf(line, sizeof line, "rm -rf %s", folder);
    assert_int_equal(system(line), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_old_kernels_lend_nothing),
        cmocka_unit_test(test_a_dump_leaves_the_launcher),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
