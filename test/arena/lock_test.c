/* ctest: timeout=60 labels=faults needs=robust */
/* The lock over the directories: it excludes, it gives up in time, and it outlives its holder. */
#include "arena/arena.h"

#include "support/skip.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define SMALL (UINT64_C(16) << 20)
#define SECOND UINT64_C(1000000000)

static char why_room[512];
static struct text why;
static struct arena a;

static int setup(void **state)
{
    (void)state;
    why = TEXT_IN(why_room);
    text_clear(&why);
    return arena_create(&a, &(struct arena_plan){ .size = 2, .span_bytes = SMALL }, &why);
}

static int teardown(void **state)
{
    (void)state;
    arena_detach(&a);
    return 0;
}

static void test_excludes(void **state)
{
    (void)state;
    enum { CHILDREN = 4, ROUNDS = 5000 };
    pid_t pid[CHILDREN];
    for (int c = 0; c < CHILDREN; c++) {
        pid[c] = fork();
        if (pid[c] == 0) {
            for (int i = 0; i < ROUNDS; i++) {
                if (arena_lock(&a, 60 * SECOND) != 0)
                    _exit(1);
                a.join->births++;
                arena_unlock(&a);
            }
            _exit(0);
        }
    }
    for (int c = 0; c < CHILDREN; c++) {
        int status;
        waitpid(pid[c], &status, 0);
        assert_int_equal(status, 0);
    }
    assert_int_equal(a.join->births, CHILDREN * ROUNDS);
}

/* A child that takes the lock, says so, and is killed with it. */
static pid_t holder(int *heard)
{
    int ends[2];
    char byte = 0;
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        byte = arena_lock(&a, SECOND) == 0;
        if (write(ends[1], &byte, 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    *heard = read(ends[0], &byte, 1) == 1 && byte;
    close(ends[0]);
    close(ends[1]);
    return pid;
}

static void test_deadline_and_death(void **state)
{
    (void)state;
    for (int i = 0; i < 30; i++) {
        int heard, status;
        pid_t pid = holder(&heard);
        assert_true(heard);
        if (i % 10 == 0) {
            uint64_t before = clock_ns();
            assert_int_equal(arena_lock(&a, 20000000), -ETIMEDOUT);
            assert_true(clock_ns() - before >= 20000000);
            assert_int_equal(arena_lock(&a, 0), -ETIMEDOUT);
        }
        kill(pid, SIGKILL);
        if (i % 2)
            waitpid(pid, &status, 0);
        assert_int_equal(arena_lock(&a, i % 3 ? 30 * SECOND : UINT64_MAX), 0);
        arena_unlock(&a);
        if (i % 2 == 0)
            waitpid(pid, &status, 0);
        assert_int_equal(arena_lock(&a, 0), 0);      /* whole again */
        arena_unlock(&a);
    }
}

/* What is left when a sleeper is woken, a third takes the lock before him, and he is killed before
 * he has said in its word that there are more sleepers: this one is never woken. Made by hand, in
 * the word of the C library's mutex. */
static void test_wake_lost(void **state)
{
    (void)state;
#if defined(__GLIBC__) && !defined(TUTTI_TSAN)
    const unsigned sleepers = 1u << 31;
    volatile int *word = &a.join->lock.__data.__lock;
    int status;
    assert_int_equal(arena_lock(&a, SECOND), 0);
    pid_t pid = fork();
    if (pid == 0)
        _exit(arena_lock(&a, 20 * SECOND) == 0 ? 0 : 1);
    while (!((unsigned)__atomic_load_n(word, __ATOMIC_ACQUIRE) & sleepers))
        sched_yield();
    __atomic_and_fetch(word, (int)~sleepers, __ATOMIC_ACQ_REL);
    arena_unlock(&a);
    waitpid(pid, &status, 0);
    assert_int_equal(status, 0);
#else
    skip_because("another C library's mutex, or a lock that never sleeps");
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_excludes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_deadline_and_death, setup, teardown),
        cmocka_unit_test_setup_teardown(test_wake_lost, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
