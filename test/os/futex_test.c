/* A sleeper in another process is woken by a changed word, by a wake, by time, by a signal, and by
 * nothing else that matters; without futex_waitv the caller is told so. A sleeper's proof of sleep
 * is its state in /proc. */
#include "os/futex.h"

#include "child.h"
#include "support/skip.h"

#include "base/clock.h"

#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { FUTEX_WAITV_NUMBER = 449 };

static const uint64_t patience = (uint64_t)PATIENCE_S * 1000000000u;

struct table {
    shared32 words[FUTEX_WORDS];
    struct process_id sleeper;
    struct child_pipe here;
    int n;
};

static struct table *new_table(int n)
{
    struct table *t = child_memory(sizeof *t);
    t->n = n;
    child_pipe_open(&t->here);
    return t;
}

static bool have_waitv(void)
{
    shared32 word = 1;
    struct futex_word one = { &word, 0 };
    return futex_wait_any(&one, 1, 0) != -ENOSYS;
}

/* n 0: the plain wait on word 0; else all n words. Returns what the wait returned, as an
 * exit status. */
static int sleeper(void *arg)
{
    struct table *t = arg;
    struct futex_word words[FUTEX_WORDS];
    int result;
    process_self(&t->sleeper);
    CHILD_CHECK(child_say(&t->here) == 0);
    for (int i = 0; i < t->n; i++)
        words[i] = (struct futex_word){ &t->words[i], 0 };
    do
        result = t->n ? futex_wait_any(words, t->n, patience)
                      : futex_wait(&t->words[0], 0, patience);
    while (result == 0 && load_acquire32(&t->words[t->n ? t->n - 1 : 0]) == 0);
    return -result;
}

static pid_t sleeping_child(struct table *t)
{
    pid_t pid = child_start(sleeper, t);
    assert_int_equal(child_hear(&t->here), 0);
    assert_true(child_becomes(&t->sleeper, "sleeping"));
    return pid;
}

static void wakes_by_its_last_word(int n)
{
    struct table *t = new_table(n);
    pid_t pid = sleeping_child(t);
    shared32 *word = &t->words[n ? n - 1 : 0];
    store_release32(word, 1);
    assert_in_range(futex_wake(word, INT_MAX), 0, 1);
    assert_int_equal(child_reap(pid), 0);
    child_pipe_close(&t->here);
}

static void test_a_wake_crosses_processes(void **state)
{
    (void)state;
    wakes_by_its_last_word(0);
}

static void test_any_of_many_words_wakes(void **state)
{
    (void)state;
    if (!have_waitv())
        skip_because("this kernel has no futex_waitv");
    wakes_by_its_last_word(1);
    wakes_by_its_last_word(2);
    wakes_by_its_last_word(FUTEX_WORDS);
}

static void test_a_changed_word_is_no_sleep(void **state)
{
    (void)state;
    shared32 words[2] = { 3, 4 };
    assert_int_equal(futex_wait(&words[0], 2, patience), 0);
    if (!have_waitv())
        skip_because("this kernel has no futex_waitv");
    struct futex_word both[] = { { &words[0], 3 }, { &words[1], 5 } };
    assert_int_equal(futex_wait_any(both, 2, patience), 0);
}

static void test_time_passes(void **state)
{
    (void)state;
    shared32 word = 3;
    struct futex_word one = { &word, 3 };
    uint64_t begin = clock_ns();
    assert_int_equal(futex_wait(&word, 3, 2000000), -ETIMEDOUT);
    assert_true(clock_ns() - begin >= 2000000);
    assert_int_equal(futex_wait(&word, 3, 0), -ETIMEDOUT);
    if (!have_waitv())
        skip_because("this kernel has no futex_waitv");
    begin = clock_ns();
    assert_int_equal(futex_wait_any(&one, 1, 2000000), -ETIMEDOUT);
    assert_true(clock_ns() - begin >= 2000000);
    assert_int_equal(futex_wait_any(&one, 1, 0), -ETIMEDOUT);
}

static void test_for_ever_is_a_legal_time(void **state)
{
    (void)state;
    shared32 word = 3;
    struct futex_word one = { &word, 4 };
    assert_int_equal(futex_wait(&word, 4, UINT64_MAX), 0);
    if (!have_waitv())
        skip_because("this kernel has no futex_waitv");
    assert_int_equal(futex_wait_any(&one, 1, UINT64_MAX), 0);
}

static void on_signal(int number) { (void)number; }

static int interrupted(void *arg)
{
    struct sigaction action = { .sa_handler = on_signal };
    sigaction(SIGUSR1, &action, NULL);
    return sleeper(arg);
}

/* Signalled until it goes: a signal that comes before the sleep is lost to it. */
static void test_a_signal_ends_the_sleep(void **state)
{
    (void)state;
    for (int n = 0; n <= (have_waitv() ? 2 : 0); n += 2) {
        struct table *t = new_table(n);
        pid_t pid = child_start(interrupted, t);
        assert_int_equal(child_hear(&t->here), 0);
        int status = 0;
        pid_t gone = 0;
        while (gone == 0) {
            child_becomes(&t->sleeper, "sleeping");
            kill(pid, SIGUSR1);
            gone = waitpid(pid, &status, WNOHANG);
        }
        assert_int_equal(gone, pid);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), EINTR);
        child_pipe_close(&t->here);
    }
}

static void test_a_wake_counts_and_keeps_errno(void **state)
{
    (void)state;
    shared32 word = 0;
    errno = EXDEV;
    assert_int_equal(futex_wake(&word, INT_MAX), 0);
    assert_true(futex_wake((shared32 *)(void *)((char *)&word + 1), 1) < 0);
    assert_int_equal(errno, EXDEV);
}

static void test_the_number_of_words_is_checked(void **state)
{
    (void)state;
    static shared32 word;
    struct futex_word words[FUTEX_WORDS + 1];
    for (int i = 0; i <= FUTEX_WORDS; i++)
        words[i] = (struct futex_word){ &word, 1 };
    assert_int_equal(futex_wait_any(words, 0, 0), -EINVAL);
    assert_int_equal(futex_wait_any(words, FUTEX_WORDS + 1, 0), -EINVAL);
}

static int without_waitv(void *arg)
{
    shared32 word = 0;
    struct futex_word one = { &word, 0 };
    if (child_forbid(FUTEX_WAITV_NUMBER, -1, 0, *(int *)arg) != 0)
        return CHILD_SKIP;
    CHILD_CHECK(futex_wait_any(&one, 1, patience) == -ENOSYS);
    CHILD_CHECK(futex_wait(&word, 0, 1000) == -ETIMEDOUT);
    return 0;
}

static void test_a_forbidden_call_is_a_missing_one(void **state)
{
    (void)state;
    int errors[] = { EPERM, ENOSYS };
    for (int i = 0; i < 2; i++) {
        int result = child_run(without_waitv, &errors[i]);
        if (result == CHILD_SKIP)
            skip_because("no seccomp filter can be set here");
        assert_int_equal(result, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_wake_crosses_processes),
        cmocka_unit_test(test_any_of_many_words_wakes),
        cmocka_unit_test(test_a_changed_word_is_no_sleep),
        cmocka_unit_test(test_time_passes),
        cmocka_unit_test(test_for_ever_is_a_legal_time),
        cmocka_unit_test(test_a_signal_ends_the_sleep),
        cmocka_unit_test(test_a_wake_counts_and_keeps_errno),
        cmocka_unit_test(test_the_number_of_words_is_checked),
        cmocka_unit_test(test_a_forbidden_call_is_a_missing_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
