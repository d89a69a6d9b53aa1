/* Looking tells what waitpid() would, as often as one likes; taking ends it. */
#include "os/reap.h"

#include "child.h"

#include "os/process.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static int ends(void *arg)
{
    int how = *(int *)arg;
    struct rlimit none = { 0, 0 };
    setrlimit(RLIMIT_CORE, &none);
    if (how < 0)
        raise(-how);
    _exit(how);
}

static int waits(void *arg) { return child_hear(arg) == 0 ? 7 : 1; }

/* Sleeps in the kernel until the child is a zombie, and leaves it. */
static void until_ended(pid_t pid)
{
    siginfo_t info;
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
}

static void expect_status(int how, int wanted)
{
    int status = -1, any = -1, last = -1;
    pid_t pid = child_start(ends, &how);
    until_ended(pid);
    assert_int_equal(reap_look(pid, &status), pid);
    assert_int_equal(reap_look(-1, &any), pid);
    assert_int_equal(status, wanted);
    assert_int_equal(any, wanted);
    assert_int_equal(waitpid(pid, &last, 0), pid);
    assert_int_equal(last, wanted);
}

static void test_it_tells_what_waitpid_tells(void **state)
{
    (void)state;
    expect_status(0, 0);
    expect_status(3, 3 << 8);
    expect_status(255, 255 << 8);
    expect_status(-SIGKILL, SIGKILL);
    expect_status(-SIGTERM, SIGTERM);
}

static void test_one_that_runs_is_left_alone(void **state)
{
    (void)state;
    struct child_pipe *go = child_memory(sizeof *go);
    int status = -1;
    child_pipe_open(go);
    pid_t pid = child_start(waits, go);
    assert_int_equal(reap_look(pid, &status), 0);
    assert_int_equal(reap_look(-1, &status), 0);
    assert_int_equal(status, -1);
    assert_int_equal(child_say(go), 0);
    until_ended(pid);
    assert_int_equal(reap_look(-1, &status), pid);
    assert_int_equal(status, 7 << 8);
    reap_take(pid);
    child_pipe_close(go);
}

static void test_others_can_ask_until_it_is_taken(void **state)
{
    (void)state;
    int how = 5, status = -1, asked = -1;
    pid_t pid = child_start(ends, &how);
    until_ended(pid);
    struct process_id id;
    assert_int_equal(process_self(&id), 0);              /* for its pid namespace */
    id.pid = pid;
    id.start = 0;
    assert_int_equal(reap_look(pid, &status), pid);
    assert_int_equal(process_end(&id, &asked), 1);
    assert_int_equal(asked, status);
    reap_take(pid);
    assert_int_equal(process_end(&id, &asked), 0);
    assert_int_equal(reap_look(pid, &status), -1);
    assert_int_equal(reap_look(-1, &status), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_tells_what_waitpid_tells),
        cmocka_unit_test(test_one_that_runs_is_left_alone),
        cmocka_unit_test(test_others_can_ask_until_it_is_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
