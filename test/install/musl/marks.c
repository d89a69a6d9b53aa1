/* SPDX-License-Identifier: MIT */
/* With another C library than GNU's: a mark tells the end of a thread and of a killed process, and
 * wakes one who sleeps on it; a lock passes on; a forked child's marks stay away from its parent's;
 * the library's threads have the stack that a call needs. Ends with 0 if all is so. */
#include "arena/robust.h"
#include "os/futex.h"
#include "os/process.h"
#include "os/thread.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LONG_NS = 1000000000, SECONDS = 20 };

static struct shared {
    struct process_mark mark, other;
    pthread_mutex_t lock;
    shared32 ready;
} *shared;

static pid_t child;

static void check(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "marks: %s\n", what);
    if (child > 0)
        kill(child, SIGKILL);
    exit(1);
}

static void begin(void)
{
    memset(shared, 0, sizeof *shared);
    check(process_mark_init(&shared->mark) == 0 && process_mark_init(&shared->other) == 0
              && robust_init(&shared->lock) == 0,
          "they could not be made");
}

static void wait_ready(void)
{
    while (load_acquire32(&shared->ready) == 0)
        futex_wait(&shared->ready, 0, LONG_NS);
}

static void say_ready(void)
{
    store_release32(&shared->ready, 1);
    futex_wake(&shared->ready, 1);
}

static uint32_t word_of(struct process_mark *mark)
{
    return load_acquire32(process_mark_word(mark));
}

/* Waits for the end of who holds the mark; the sleep has no other end than a wake. */
static void await_end(struct process_mark *mark)
{
    uint32_t word = word_of(mark);
    while (process_mark_held(word)) {
        check(futex_wait(process_mark_word(mark), word, 60ull * LONG_NS) != -ETIMEDOUT,
              "nobody woke who slept on a mark");
        word = word_of(mark);
    }
    check(process_mark_died(word), "a mark without its holder does not say so");
}

static void held_and_killed(struct process_mark *mark, void *list)
{
    alarm(SECONDS);
    process_marks_in_child(list);
    check(process_mark_hold(mark) == 0 && robust_lock(&shared->lock, LONG_NS) == 0, "not held");
    check(process_mark_mine(mark), "a held mark is not the holder's");
    say_ready();
    for (;;)
        pause();
}

static pid_t forked(struct process_mark *mark)
{
    void *list = process_marks_before_fork();
    pid_t pid = child = fork();
    if (pid == 0)
        held_and_killed(mark, list);
    wait_ready();
    check(process_mark_held(word_of(mark)), "a held mark does not say so");
    return pid;
}

static void ended(pid_t pid, struct process_mark *mark)
{
    kill(pid, SIGKILL);
    await_end(mark);
    waitpid(pid, NULL, 0);
    child = 0;
    check(robust_lock(&shared->lock, LONG_NS) == -EOWNERDEAD, "the lock did not pass on");
    check(robust_mend(&shared->lock) == 0, "the lock could not be mended");
    robust_unlock(&shared->lock);
}

static void of_a_process(void)
{
    begin();
    ended(forked(&shared->mark), &shared->mark);
    check(process_mark_hold(&shared->mark) == 0 && process_mark_held(word_of(&shared->mark)),
          "a dead holder's mark could not be taken over");
    check(process_mark_leave(&shared->mark) == 0 && word_of(&shared->mark) == 0, "not left");
}

/* The child's list of held locks begins with its parent's, unless it is told to forget. */
static void of_a_fork(void)
{
    begin();
    check(process_mark_hold(&shared->mark) == 0, "not held");
    struct process_mark before = shared->mark;
    pid_t pid = forked(&shared->other);
    check(memcmp(&before, &shared->mark, sizeof before) == 0, "a child wrote to its parent's mark");
    ended(pid, &shared->other);
    check(process_mark_mine(&shared->mark), "the parent's mark is gone");
    check(process_mark_leave(&shared->mark) == 0, "not left");
}

static void *in_a_thread(void *arg)
{
    volatile char stack[300 << 10];
    for (size_t i = 0; i < sizeof stack; i++)
        stack[i] = 1;
    check(process_mark_hold(arg) == 0, "not held by a thread");
    say_ready();
    return NULL;
}

static void of_a_thread(void)
{
    pthread_t thread;
    begin();
    check(thread_start(&thread, in_a_thread, &shared->mark) == 0, "no thread");
    wait_ready();
    await_end(&shared->mark);
    pthread_join(thread, NULL);
}

int main(void)
{
    alarm(SECONDS);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    check(shared != MAP_FAILED, "no memory");
    of_a_process();
    of_a_fork();
    of_a_thread();
    return 0;
}
