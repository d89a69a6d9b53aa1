/* Job: ask Linux about a process: is it alive, since when, what does it do; and the mark that the
 *      kernel leaves when it dies.
 * Owns: the words inside `struct process_mark`, on behalf of the rank that holds it.
 * Never: knows ranks, comms, verdicts.
 *
 * The mark is a robust process-shared mutex of glibc, locked for life by the rank's thread. Its
 * lock word is a futex: when that thread ends, the kernel sets OWNER_DIED in it and wakes one
 * waiter, and that one wakes the others. FUTEX_WAITERS is set in the word from the start, or the
 * kernel would wake nobody. */
#ifndef TUTTI_OS_PROCESS_H
#define TUTTI_OS_PROCESS_H

#include "base/atomic.h"
#include "base/text.h"

#include <linux/futex.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

struct process_mark { _Alignas(64) pthread_mutex_t mutex; };

/* never held | held | the kernel's mark | unlocked after being held */
enum process_life { PROCESS_FREE, PROCESS_HELD, PROCESS_DIED, PROCESS_LEFT };

int  process_mark_init(struct process_mark *mark);  /* by the arena's creator; the word is 0 */
/* Locks the mark for life, by the rank's thread, and sets WAITERS. A dead holder's mark is taken
 * over. 0 or -errno. */
int  process_mark_hold(struct process_mark *mark);
/* Unlocks, then wakes all. By the holding thread only. */
int  process_mark_leave(struct process_mark *mark);
#ifdef __GLIBC__
#define PROCESS_MARK_LOCK __data.__lock
#else
#define PROCESS_MARK_LOCK __u.__vi[1]
#endif
/* The word to sleep on. */
static inline shared32 *process_mark_word(struct process_mark *mark)
{
    return (shared32 *)(void *)&mark->mutex.PROCESS_MARK_LOCK;
}

/* A tid in it and not OWNER_DIED. */
static inline bool process_mark_held(uint32_t word)
{
    return (word & FUTEX_TID_MASK) != 0 && (word & FUTEX_OWNER_DIED) == 0;
}

bool process_mark_died(uint32_t word);
/* Sets OWNER_DIED where the kernel has not: by whoever knows that the holder has ended. Wakes
 * nobody. */
void process_mark_set(struct process_mark *mark);
bool process_mark_mine(struct process_mark *mark);          /* the calling thread is the holder */
/* Before a fork, by the thread that forks; then in the child, with the result: its marks are its
 * parent's alone. */
void *process_marks_before_fork(void);
void process_marks_in_child(void *list);

bool process_main_thread(void);                             /* the caller is the process's first */
/* A file of the calling thread in /proc, by the shorter way where there is one. */
#define PROCESS_OWN(file) \
    (process_main_thread() ? "/proc/./self/" file : "/proc/thread-self/" file)

/* start: clock ticks since boot, by the machine's clock; 0: unknown, equals any other.
   /proc/PID/stat shows it by the reader's clock, which differs in a time namespace. pid_namespace:
   0: the caller's own; UNKNOWN: no /proc. */
struct process_id { int32_t pid, tid; uint64_t start; uint64_t pid_namespace; };
#define PROCESS_NAMESPACE_UNKNOWN UINT64_MAX

int  process_self(struct process_id *id);
/* ns by which this process's CLOCK_MONOTONIC is ahead of the machine's, in a time namespace. 0:
 * unknown, too. */
int64_t process_clock_ahead(void);
/* 1: that process is alive and able to run. 0: it has ended, is a zombie, dumps core, its pid is
   another process now, or its thread tid has ended. -EXDEV: not known: another pid namespace, or no
   /proc. pidfd: >= 0, of this namespace, or -1. Cost: 0.2 µs for an ended process with a pidfd;
   some 6 µs for a living one, as /proc shows a core dump; 10 µs without a pidfd. */
int  process_alive(const struct process_id *id, int pidfd);
int  process_pidfd(const struct process_id *id); /* descriptor >= 100, CLOEXEC, or negative errno */
/* One word for people: "running", "sleeping", "stopped", "zombie", "in the kernel", "gone", "out of
   sight" (another pid namespace), and its CPU time so far. cpu_ns may be NULL. */
const char *process_state(const struct process_id *id, uint64_t *cpu_ns);
/* That process has a handler for this signal, ignores or blocks it: it does not end by it. */
bool process_takes(pid_t pid, int number);
void process_name(pid_t pid, char *name, size_t room);  /* comm of the program, "?" if unknown */
/* pid and start time of the nearest ancestor whose comm equals name (15 characters compared). 0
 * or -ENOENT. */
int  process_ancestor(const char *name, pid_t *pid, uint64_t *start);

/* 1: the process is ending, or has ended and is not reaped; *status as of waitpid. 0: it runs, or
   it is not known (reaped, out of sight). A death by a signal shows before the memory is freed. */
int  process_end(const struct process_id *id, int *status);

/* In place of a waitpid status: the real one is lost. No process ends with this number. */
enum { PROCESS_END_UNKNOWN = 0xffff };
/* Beside a waitpid status: the kernel killed it for want of memory (os/oom). */
enum { PROCESS_END_OOM = 0x10000 };

/* waitpid status in words: "exit status 3", "killed by signal 9 (SIGKILL)". */
void process_add_status(struct text *t, int status);

#endif
