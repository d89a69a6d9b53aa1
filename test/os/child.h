/* Job: children for the tests of this floor: started, met at points and reaped by their number.
 * Owns: the child's process.
 * Never: an assertion inside a child; it says what went wrong by its exit status. */
#ifndef TUTTI_TEST_OS_CHILD_H
#define TUTTI_TEST_OS_CHILD_H

#include "os/process.h"

#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

/* PATIENCE_S: how long a test that fails takes to say so */
enum { CHILD_SKIP = 77, PATIENCE_S = 60 };

/* In a child: leave with 1 and say where. */
#define CHILD_CHECK(condition) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "%s:%d: in the child: %s\n", __FILE__, __LINE__, #condition); \
            return 1; \
        } \
    } while (0)

/* Forks; the child's exit status is what fn returns. It is killed when the test goes. */
pid_t child_start(int (*fn)(void *arg), void *arg);
int child_reap(pid_t pid);                           /* the status as waitpid gives it */
int child_run(int (*fn)(void *arg), void *arg);      /* start, reap; exit status, or 128 + signal */
void child_kill(pid_t pid);                          /* SIGKILL, then reaped */

/* Memory that children share. */
void *child_memory(size_t bytes);

/* 1: somebody's state has become `word`; 0: it ended without, or patience did. Looks again and
 * again, yielding in between. */
int child_becomes(const struct process_id *id, const char *word);

/* One byte through a pipe: the way for a child to say "here", and for the test to say "go on". */
struct child_pipe { int ends[2]; };
void child_pipe_open(struct child_pipe *p);
void child_pipe_close(struct child_pipe *p);
int child_say(const struct child_pipe *p);           /* 0 or -1 */
int child_hear(const struct child_pipe *p);          /* 0 or -1; waits */

/* From now on this process's system call `number` fails with `error` if its argument `arg` is
   `value` (arg -1: always). 0, or -1: no seccomp here. */
int child_forbid(int number, int arg, unsigned value, int error);

#endif
