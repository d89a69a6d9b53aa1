/* ctest: timeout=180 */
/* CUDA does not survive fork: who may still use it in a child, and who is told that it may not. */
#include "case_device.h"
#include "driver_probe.h"
#include "device_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static int in_fork(int (*body)(void))
{
    int status;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        /* one that hangs goes with the case that is ended for it */
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        _exit(body());
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid ? status : -1;
}

static uint64_t calls;

/* Refused, and the driver has not been called: its count is the child's own copy. */
static int child_is_refused(void)
{
    const struct driver *driver;
    struct driver_pointer p;
    IS(opens(&driver), -ENOTSUP);
    SAYS("CUDA does not survive fork");
    OK(asks((void *)(uintptr_t)dev, &p));
    IS(p.memory, DRIVER_HOST);
    IS(fake.fakeCalls(), calls);
    return 0;
}

static int child_and_grandchild_are_refused(void)
{
    return child_is_refused() || in_fork(child_is_refused) != 0;
}

static int child_opens(void)
{
    const struct driver *driver;
    OK(opens(&driver));
    IS(driver->devices, 1);
    return 0;
}

static int fork_after_open(void)
{
    const struct driver *driver;
    struct driver_pointer p;
    OK(opens(&driver));
    if (fixture_begin(true))
        return 1;
    OK(asks((void *)(uintptr_t)dev, &p));
    IS(p.memory, DRIVER_DEVICE);
    calls = fake.fakeCalls();
    IS(in_fork(child_and_grandchild_are_refused), 0);
    OK(asks((void *)(uintptr_t)dev, &p));            /* the parent goes on */
    IS(p.memory, DRIVER_DEVICE);
    return fixture_end();
}

/* We have begun it, and not asked it anything yet. */
static int fork_right_after_open(void)
{
    const struct driver *driver;
    OK(opens(&driver));
    YES(case_cuda());
    calls = fake.fakeCalls();
    return in_fork(child_and_grandchild_are_refused) != 0;
}

/* Others have begun it; we know by an answer it gave. */
static int fork_after_pointer(void)
{
    struct driver_pointer p;
    if (fixture_begin(true))
        return 1;
    OK(asks(words, &p));
    calls = fake.fakeCalls();
    IS(in_fork(child_and_grandchild_are_refused), 0);
    return fixture_end();
}

/* Loaded, asked, not begun: the child may. */
static int fork_before_begin(void)
{
    struct driver_pointer p;
    void *library = dlopen("libcuda.so.1", RTLD_LAZY);
    YES(library);
    OK(asks(words, &p));
    IS(p.memory, DRIVER_HOST);
    IS(in_fork(child_opens), 0);
    IS(in_fork(child_opens), 0);
    return child_opens();
}

static int fork_after_refusal(void)
{
    if (refused())
        return 1;
    return in_fork(refused) != 0;
}

static void *asks_on(void *arg)
{
    struct driver_pointer p;
    (void)arg;
    for (;;)
        driver_pointer(words, &p, NULL);
    return NULL;
}

/* Threads of the parent are in the midst of questions whenever it forks; no child waits
 * for them. */
static int fork_in_the_midst(void)
{
    pthread_t thread;
    void *library = dlopen("libcuda.so.1", RTLD_LAZY);
    YES(library);
    for (int i = 0; i < 2; i++)
        OK(pthread_create(&thread, NULL, asks_on, NULL));
    for (int i = 0; i < 100; i++)
        IS(in_fork(child_opens), 0);
    return 0;
}

static int child_asks_the_loader(void)
{
    struct driver_pointer p;
    alarm(60);                                      /* a lock of the loader that is held for ever */
    OK(asks(words, &p));
    return p.memory != DRIVER_HOST;
}

/* Nobody has loaded the driver: each question goes to the loader, which has a lock that fork does
 * not know. So it does for ever once all marks are loaded, and a library behind them. */
static int fork_while_the_loader_is_asked(void)
{
    enum { MARKS = 5, ENOUGH = 200 };
    pthread_t thread;
    for (int i = 0; i <= MARKS; i++) {
        load_another();
        for (int j = 0; j < ENOUGH; j++)
            IS(driver_loaded(), 0);
    }
    for (int i = 0; i < 2; i++)
        OK(pthread_create(&thread, NULL, asks_on, NULL));
    for (int i = 0; i < 300; i++)
        IS(in_fork(child_asks_the_loader), 0);
    return 0;
}

static void forks_are_known(void **state)
{
    (void)state;
    PASSES(fork_after_open, NULL);
    PASSES(fork_right_after_open, NULL);
    PASSES(fork_after_pointer, NULL);
    PASSES(fork_before_begin, NULL);
    PASSES(fork_after_refusal, "FAKE_CUDA_DEVICES=0", "RESULT=19", "SAY=no GPU", "SAY2=", NULL);
    PASSES(fork_while_the_loader_is_asked, NULL);
    /* What the sanitizer has put in malloc's place is locked for good in a child that is forked
     * while another thread allocates (gcc 12). */
    if (getenv("TUTTI_TEST_SANITIZED"))
        print_message("skipped with sanitizers: forks in the midst of threads' questions\n");
    else
        PASSES(fork_in_the_midst, NULL);
}

int main(int argc, char **argv)
{
    (void)argc;
    if (case_needs_fake("counts its calls"))
        return CASE_SKIP;
    cases_with(argv, "fake_cuda");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forks_are_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
