/* ctest: needs=vm_read */
/* Reading what is private to another process: all of it, or the reason why not. */
#include "os/memory.h"
#include "os/vm_read.h"

#include "child.h"
#include "support/skip.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#define PAGE  memory_page()
#define BYTES (5 * PAGE)

static char *map(void)
{
    char *at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(at != MAP_FAILED);
    return at;
}

static char byte(size_t i) { return (char)(i * 37 + (i >> 8) + (i >> 16)); }

/* What the child has at `at`, when the test has nothing there any more. */
struct there { char *at; struct child_pipe ready; };

static int child(void *arg)
{
    struct there *t = arg;
    for (size_t i = 0; i < BYTES; i++)
        t->at[i] = byte(i);
    CHILD_CHECK(munmap(t->at + 3 * PAGE, PAGE) == 0);
    CHILD_CHECK(child_say(&t->ready) == 0);
    pause();
    return 0;
}

static void test_another_process(void **state)
{
    (void)state;
    struct there t = { .at = map() };
    char *to = malloc(BYTES);
    child_pipe_open(&t.ready);
    pid_t pid = child_start(child, &t);
    assert_int_equal(child_hear(&t.ready), 0);
    uint64_t at = (uint64_t)(uintptr_t)t.at;
    int r = vm_read(pid, to, at + 1, 3 * PAGE - 1);
    if (r == -EPERM || r == -ENOSYS) {
        child_kill(pid);
        skip_because("memory of a child may not be read here: %s", strerror(-r));
    }
    assert_int_equal(r, 0);
    for (size_t i = 0; i + 1 < 3 * PAGE; i++)
        assert_int_equal(to[i], byte(i + 1));
    assert_int_equal(t.at[0], 0);                                    /* our own is another one */
    assert_int_equal(vm_read(pid, to, at, 3 * PAGE + 1), -EFAULT);  /* its last byte is not there */
    assert_int_equal(vm_read(pid, to, at + 3 * PAGE, 1), -EFAULT);
    assert_int_equal(vm_read(pid, to, at, 0), 0);
    /* It is read only of the process that is known. */
    char known[VM_KNOWN];
    for (size_t i = 0; i < sizeof known; i++)
        known[i] = byte(PAGE + i);
    memset(to, 0, BYTES);
    assert_int_equal(vm_read_known(pid, (struct vm_known){ known, sizeof known, at + PAGE }, to, at,
                                   3 * PAGE),
                     0);
    for (size_t i = 0; i < 3 * PAGE; i++)
        assert_int_equal(to[i], byte(i));
    assert_int_equal(vm_read_known(pid, (struct vm_known){ known, sizeof known, at }, to, at, PAGE),
                     -ESRCH);
    assert_int_equal(vm_read_known(pid, (struct vm_known){ known, sizeof known, at + 3 * PAGE }, to,
                                   at, PAGE),
                     -ESRCH);
    assert_int_equal(vm_read_known(pid, (struct vm_known){ known, 1, at + PAGE }, to, at,
                                   3 * PAGE + 1),
                     -EFAULT);
    child_kill(pid);
    assert_int_equal(vm_read(pid, to, at, 1), -ESRCH);
    child_pipe_close(&t.ready);
    free(to);
    munmap(t.at, BYTES);
}

static void test_own(void **state)
{
    (void)state;
    char *at = map();
    assert_int_equal(vm_own(at, BYTES), 0);
    assert_int_equal(vm_own(at + 1, 1), 0);
    assert_int_equal(mprotect(at + 4 * PAGE, PAGE, PROT_NONE), 0);
    assert_int_equal(vm_own(at, BYTES), -EFAULT);
    assert_int_equal(vm_own(at + 4 * PAGE, 1), -EFAULT);
    assert_int_equal(vm_own(at, 4 * PAGE), 0);
    assert_int_equal(vm_own(at + 4 * PAGE, 0), 0);                /* of nothing nothing is read */
    munmap(at, BYTES);
}

static int refused(void *arg)
{
    char x = 1, to;
    (void)arg;
    if (child_forbid(SYS_process_vm_readv, -1, 0, EPERM) != 0)
        return CHILD_SKIP;
    CHILD_CHECK(vm_read(getppid(), &to, (uint64_t)(uintptr_t)&x, 1) == -EPERM);
    CHILD_CHECK(vm_own(&x, 1) == -EPERM);
    return 0;
}

static void test_refused(void **state)
{
    (void)state;
    int r = child_run(refused, NULL);
    if (r == CHILD_SKIP)
        skip_because("no seccomp filter can be set here");
    assert_int_equal(r, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_another_process),
        cmocka_unit_test(test_own),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
