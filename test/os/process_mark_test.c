/* ctest: labels=tsan */
/* The mark does what the whole library rests on: whoever sleeps on it is woken by the kernel when
 * the holder goes, by SIGKILL or by the end of its thread, and the next one can take it over. */
#include "os/process.h"

#include "child.h"
#include "support/skip.h"

#include "os/futex.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { SLEEPERS = 3 };

static const uint64_t patience = (uint64_t)PATIENCE_S * 1000000000u;

struct scene {
    struct process_mark mark;
    shared32 verdict;                    /* a second word to sleep on, never changed */
    struct process_id sleeper[SLEEPERS];
    struct child_pipe holds, go, sleeps;
    bool keep_wakes;                     /* sleepers pass no wake on */
};

static struct scene *new_scene(void)
{
    struct scene *s = child_memory(sizeof *s);
    assert_int_equal(process_mark_init(&s->mark), 0);
    child_pipe_open(&s->holds);
    child_pipe_open(&s->go);
    child_pipe_open(&s->sleeps);
    return s;
}

static void end_scene(struct scene *s)
{
    child_pipe_close(&s->holds);
    child_pipe_close(&s->go);
    child_pipe_close(&s->sleeps);
}

static uint32_t word_of(struct scene *s)
{
    return load_acquire32(process_mark_word(&s->mark));
}

/* Emulators have no robust list: the mark is a mutex there and no more. */
static bool kernel_marks(void)
{
    void *head;
    size_t len;
    return syscall(SYS_get_robust_list, 0, &head, &len) == 0;
}

/* Holds until told to go on, then leaves it or not. */
static int holder(void *arg)
{
    struct scene *s = arg;
    CHILD_CHECK(process_mark_hold(&s->mark) == 0);
    CHILD_CHECK(process_mark_mine(&s->mark));
    CHILD_CHECK(child_say(&s->holds) == 0);
    CHILD_CHECK(child_hear(&s->go) == 0);
    CHILD_CHECK(process_mark_leave(&s->mark) == 0);
    return 0;
}

static pid_t start_holder(struct scene *s)
{
    pid_t pid = child_start(holder, s);
    assert_int_equal(child_hear(&s->holds), 0);
    assert_true(process_mark_held(word_of(s)));
    return pid;
}

/* Sleeps on the mark and one other word, as a rank does, as long as the mark is held; passes the
 * wake on, as a rank must. */
static int sleep_while_held(struct scene *s)
{
    for (;;) {
        uint32_t word = word_of(s);
        if (!process_mark_held(word))
            return 0;
        struct futex_word words[] = { { &s->verdict, 0 }, { process_mark_word(&s->mark), word } };
        int error = futex_wait_any(words, 2, patience);
        if (error == -ENOSYS)
            error = futex_wait(process_mark_word(&s->mark), word, patience);
        if (!s->keep_wakes)
            futex_wake(process_mark_word(&s->mark), INT_MAX);
        if (error)
            return error;
    }
}

struct seat { struct scene *scene; int index; };

static int sleeper(void *arg)
{
    struct seat *seat = arg;
    struct scene *s = seat->scene;
    process_self(&s->sleeper[seat->index]);
    CHILD_CHECK(child_say(&s->sleeps) == 0);
    CHILD_CHECK(sleep_while_held(s) == 0);
    return process_mark_died(word_of(s)) ? 10 : 20;
}

static void start_sleepers(struct scene *s, pid_t pids[SLEEPERS])
{
    struct seat seat = { s, 0 };
    for (seat.index = 0; seat.index < SLEEPERS; seat.index++) {
        pids[seat.index] = child_start(sleeper, &seat);
        assert_int_equal(child_hear(&s->sleeps), 0);
        assert_true(child_becomes(&s->sleeper[seat.index], "sleeping"));
    }
}

static void expect_all_return(const pid_t pids[SLEEPERS], int wanted)
{
    for (int i = 0; i < SLEEPERS; i++) {
        int status = child_reap(pids[i]);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), wanted);
    }
}

static void test_a_new_mark_is_free(void **state)
{
    (void)state;
    struct scene *s = new_scene();
    assert_int_equal(word_of(s), 0);
    assert_false(process_mark_held(0));
    assert_false(process_mark_died(0));
    assert_false(process_mark_mine(&s->mark));
    end_scene(s);
}

static void test_held_shows_the_thread_and_waiters(void **state)
{
    (void)state;
    struct scene *s = new_scene();
    assert_int_equal(process_mark_hold(&s->mark), 0);
    assert_int_equal(word_of(s), (uint32_t)gettid() | FUTEX_WAITERS);
    assert_true(process_mark_mine(&s->mark));
    assert_int_equal(process_mark_hold(&s->mark), -EBUSY);
    assert_int_equal(process_mark_leave(&s->mark), 0);
    assert_int_equal(word_of(s), 0);
    assert_int_equal(process_mark_leave(&s->mark), -EPERM);
    end_scene(s);
}

static void test_another_s_mark_is_not_touched(void **state)
{
    (void)state;
    struct scene *s = new_scene();
    pid_t pid = start_holder(s);
    uint32_t word = word_of(s);
    assert_int_equal(process_mark_hold(&s->mark), -EBUSY);
    assert_int_equal(process_mark_leave(&s->mark), -EPERM);
    assert_false(process_mark_mine(&s->mark));
    assert_int_equal(word_of(s), word);
    child_kill(pid);
    end_scene(s);
}

static void test_a_kill_wakes_the_sleepers(void **state)
{
    (void)state;
    if (!kernel_marks())
        skip_because("this kernel marks no robust lock of a dead process");
    for (int i = 0; i < 20; i++) {
        struct scene *s = new_scene();
        pid_t sleepers[SLEEPERS], pid = start_holder(s);
        start_sleepers(s, sleepers);
        kill(pid, SIGKILL);
        expect_all_return(sleepers, 10);
        assert_true(process_mark_died(word_of(s)));
        assert_false(process_mark_held(word_of(s)));
        child_reap(pid);
        end_scene(s);
    }
}

/* All of them by itself: only a death wakes no more than one. */
static void test_a_leave_wakes_all_sleepers(void **state)
{
    (void)state;
    struct scene *s = new_scene();
    s->keep_wakes = true;
    pid_t sleepers[SLEEPERS], pid = start_holder(s);
    start_sleepers(s, sleepers);
    assert_int_equal(child_say(&s->go), 0);
    expect_all_return(sleepers, 20);
    assert_int_equal(child_reap(pid), 0);
    assert_int_equal(word_of(s), 0);
    end_scene(s);
}

static int takes_over(void *arg)
{
    struct scene *s = arg;
    CHILD_CHECK(process_mark_died(word_of(s)));
    CHILD_CHECK(process_mark_hold(&s->mark) == 0);
    CHILD_CHECK(process_mark_mine(&s->mark));
    CHILD_CHECK(word_of(s) & FUTEX_WAITERS);
    if (child_say(&s->holds) == 0 && child_hear(&s->go) == 0)
        return process_mark_leave(&s->mark) == 0 ? 0 : 1;
    return 1;
}

/* The second holder's mark must be as good as the first's: it is killed in turn, and a third takes
 * it and leaves it. */
static void test_a_dead_one_s_mark_is_taken_over(void **state)
{
    (void)state;
    if (!kernel_marks())
        skip_because("this kernel marks no robust lock of a dead process");
    struct scene *s = new_scene();
    child_kill(start_holder(s));
    for (int i = 0; i < 3; i++) {
        pid_t sleepers[SLEEPERS], pid = child_start(takes_over, s);
        assert_int_equal(child_hear(&s->holds), 0);
        assert_true(process_mark_held(word_of(s)));
        start_sleepers(s, sleepers);
        kill(pid, SIGKILL);
        expect_all_return(sleepers, 10);
        child_reap(pid);
    }
    pid_t last = child_start(takes_over, s);
    assert_int_equal(child_hear(&s->holds), 0);
    assert_int_equal(child_say(&s->go), 0);
    assert_int_equal(child_reap(last), 0);
    assert_int_equal(word_of(s), 0);
    assert_int_equal(process_mark_hold(&s->mark), 0);
    assert_int_equal(process_mark_leave(&s->mark), 0);
    end_scene(s);
}

static void *thread_that_ends_holding(void *arg)
{
    struct scene *s = arg;
    if (process_mark_hold(&s->mark) == 0 && child_say(&s->holds) == 0)
        child_hear(&s->go);
    return NULL;
}

static void test_the_end_of_a_thread_is_marked(void **state)
{
    (void)state;
    if (!kernel_marks())
        skip_because("this kernel marks no robust lock of a dead process");
    struct scene *s = new_scene();
    pthread_t thread;
    pid_t sleepers[SLEEPERS];
    assert_int_equal(pthread_create(&thread, NULL, thread_that_ends_holding, s), 0);
    assert_int_equal(child_hear(&s->holds), 0);
    assert_true(process_mark_held(word_of(s)));
    assert_false(process_mark_mine(&s->mark));
    assert_int_equal(process_mark_leave(&s->mark), -EPERM);
    start_sleepers(s, sleepers);
    assert_int_equal(child_say(&s->go), 0);
    expect_all_return(sleepers, 10);
    pthread_join(thread, NULL);
    assert_int_equal(process_mark_hold(&s->mark), 0);
    assert_int_equal(process_mark_leave(&s->mark), 0);
    end_scene(s);
}

static int forks_and_ends(void *arg)
{
    struct scene *s = arg;
    CHILD_CHECK(!process_mark_mine(&s->mark));
    return 0;
}

/* A rank's fork goes without taking the rank's mark along. */
static void test_a_fork_s_end_is_nobody_s_death(void **state)
{
    (void)state;
    struct scene *s = new_scene();
    assert_int_equal(process_mark_hold(&s->mark), 0);
    assert_int_equal(child_run(forks_and_ends, s), 0);
    assert_true(process_mark_held(word_of(s)));
    assert_true(process_mark_mine(&s->mark));
    assert_int_equal(process_mark_leave(&s->mark), 0);
    end_scene(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_new_mark_is_free),
        cmocka_unit_test(test_held_shows_the_thread_and_waiters),
        cmocka_unit_test(test_another_s_mark_is_not_touched),
        cmocka_unit_test(test_a_kill_wakes_the_sleepers),
        cmocka_unit_test(test_a_leave_wakes_all_sleepers),
        cmocka_unit_test(test_a_dead_one_s_mark_is_taken_over),
        cmocka_unit_test(test_the_end_of_a_thread_is_marked),
        cmocka_unit_test(test_a_fork_s_end_is_nobody_s_death),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
