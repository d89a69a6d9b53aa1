/* Job: what Linux knows of a process: is it there, since when, what is it doing; and the mark the
 *      kernel leaves when it goes.
 * Owns: the words inside `struct process_mark`, on behalf of the rank that holds it.
 * Never: ranks, comms, verdicts.
 *
 * This is the one room that knows glibc's robust mutexes: the mark is a robust process-shared
 * mutex, locked for life by the rank's thread; its lock word is the futex that the kernel changes
 * (OWNER_DIED) and wakes when that thread goes. The word gets FUTEX_WAITERS from the start, or the
 * kernel would wake nobody. The kernel wakes exactly one waiter: whoever is woken passes it on. */
#ifndef TUTTI_OS_PROCESS_H
#define TUTTI_OS_PROCESS_H

#include "base/atomic.h"
#include "base/text.h"

#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

struct process_mark { _Alignas(64) pthread_mutex_t mutex; };

/* never held | held | the kernel's mark | unlocked after being held */
enum process_life { PROCESS_FREE, PROCESS_HELD, PROCESS_DIED, PROCESS_LEFT };

int  process_mark_init(struct process_mark *mark);  /* by whoever makes the arena; the word is 0 */
/* by the rank's thread: locks for life (EOWNERDEAD is made consistent: takeover); 0 or -errno.
 * WAITERS is set before it returns */
int  process_mark_hold(struct process_mark *mark);
/* by the holding thread only: unlock, then wake all */
int  process_mark_leave(struct process_mark *mark);
shared32 *process_mark_word(struct process_mark *mark);     /* what to sleep on */
bool process_mark_held(uint32_t word);                      /* a tid in it and not OWNER_DIED */
bool process_mark_died(uint32_t word);
bool process_mark_mine(struct process_mark *mark);          /* is the calling thread the holder? */

/* start: clock ticks since boot, by the clock of the machine; 0: unknown, which is like any other.
   /proc/PID/stat shows it by the reader's clock, which is another one in a time namespace.
   pid_namespace: 0 whoever asks says that it is his own; UNKNOWN without /proc. */
struct process_id { int32_t pid, tid; uint64_t start; uint64_t pid_namespace; };
#define PROCESS_NAMESPACE_UNKNOWN UINT64_MAX

int  process_self(struct process_id *id);
/* By how many ns this process's CLOCK_MONOTONIC is ahead of the machine's: it is in a time
 * namespace. Unknown: 0. */
int64_t process_clock_ahead(void);
/* Is that very process still there and able to run? 1 yes; 0 no: gone, another with the same pid, a
   zombie, dumping core (CoreDumping: 1), or its thread tid gone (exec by another thread). -EXDEV:
   in another pid namespace, or perhaps (no /proc): cannot tell. With a pidfd (>= 0, of this
   namespace) a process that has ended costs 0.2 µs; for a living one a core dump is looked for in
   /proc, some 6 µs, 10 µs without a pidfd. */
int  process_alive(const struct process_id *id, int pidfd);
int  process_pidfd(const struct process_id *id); /* descriptor >= 100, CLOEXEC, or negative errno */
/* One word for people: "running", "sleeping", "stopped", "zombie", "in the kernel", "gone", "out of
   sight" (another pid namespace), and its CPU time so far. cpu_ns may be NULL. */
const char *process_state(const struct process_id *id, uint64_t *cpu_ns);
void process_name(pid_t pid, char *name, size_t room);  /* comm of the program, "?" if unknown */
/* pid and start time of the nearest ancestor whose comm equals name (15 characters compared). 0
 * or -ENOENT. */
int  process_ancestor(const char *name, pid_t *pid, uint64_t *start);

/* How a process that ends or has ended (and is not reaped yet) does so: 1 and *status as waitpid
   gives it. 0: it goes on, or one cannot tell (reaped, out of sight). A process that dies of a
   signal says so before its memory is given back. */
int  process_end(const struct process_id *id, int *status);

/* In place of a waitpid status: somebody else was told it, or nobody. It is that of no end. */
enum { PROCESS_END_UNKNOWN = 0xffff };

/* waitpid status in words: "exit status 3", "killed by signal 9 (SIGKILL)". */
void process_add_status(struct text *t, int status);

#endif
