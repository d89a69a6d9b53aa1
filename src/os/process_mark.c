/* The mark shows the end of a rank's thread, of any kind. It is a robust mutex and not a list of
 * our own: glibc owns the robust list of each thread. The kernel walks that list even after
 * SIGKILL, within 100 us, before it frees memory. The mutex excludes no thread: it is held for
 * life, and only its word is read.
 *
 *   0                     free, or left (unlocked)
 *   tid | WAITERS         held
 *   OWNER_DIED | WAITERS  the holder's thread ended; the kernel has woken one sleeper
 *
 * WAITERS is set by the holder itself, since nobody sleeps through glibc; without it the kernel
 * would wake nobody. glibc keeps a set bit until the unlock, so setting it once is enough. A
 * holder killed between lock and bit leaves the mark without a wake: sleepers look again by
 * themselves in slices.
 * musl does all this likewise, but for two things. Its word lies elsewhere in the mutex; and a fork
 * takes the list of the thread along, whose first mark, the parent's, the child's next lock would
 * write to: so the child of a fork is told to begin anew (process_marks_in_child).
 * Costs: hold and leave about 100 ns and one wake. Linux with glibc or musl only: another libc
 *        needs its own file here. */
#include "os/process.h"

#include "os/futex.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

int process_mark_init(struct process_mark *mark)
{
    pthread_mutexattr_t attributes;
    int error = pthread_mutexattr_init(&attributes);
    if (error)
        return -error;
    error = pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    if (!error)
        error = pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    if (!error)
        error = pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_NORMAL);
    if (!error)
        error = pthread_mutex_init(&mark->mutex, &attributes);
    pthread_mutexattr_destroy(&attributes);
    return -error;
}

/* trylock: a mark that another holds is an error to report, never a reason to wait. */
int process_mark_hold(struct process_mark *mark)
{
    int error = pthread_mutex_trylock(&mark->mutex);
    if (error == EOWNERDEAD)
        error = pthread_mutex_consistent(&mark->mutex);
    if (error)
        return -error;
    fetch_or32(process_mark_word(mark), FUTEX_WAITERS);
    return 0;
}

/* Checked before the unlock, which would fail, too: ThreadSanitizer reports an unlock by another
 * thread as a bug. */
int process_mark_leave(struct process_mark *mark)
{
    if (!process_mark_mine(mark))
        return -EPERM;
    int error = pthread_mutex_unlock(&mark->mutex);
    if (error)
        return -error;
    int woken = futex_wake(process_mark_word(mark), INT_MAX);
    return woken < 0 ? woken : 0;
}

bool process_mark_died(uint32_t word)
{
    return (word & FUTEX_OWNER_DIED) != 0;
}

void process_mark_set(struct process_mark *mark)
{
    shared32 *word = process_mark_word(mark);
    uint32_t seen = load_acquire32(word);                            /* E5 acquire */
    while (!process_mark_died(seen)
           && !swap_if32(word, &seen, (seen & FUTEX_WAITERS) | FUTEX_OWNER_DIED)) /* E5 release */
        ;
}

/* The word holds a tid of the holder's pid namespace: only for marks of our namespace. */
bool process_mark_mine(struct process_mark *mark)
{
    /* relaxed: only this thread can put its own number there or take it away. */
    uint32_t word = load_relaxed32(process_mark_word(mark));
    return process_mark_held(word) && (word & FUTEX_TID_MASK) == (uint32_t)syscall(SYS_gettid);
}

#ifdef __GLIBC__
void *process_marks_before_fork(void) { return NULL; }
void process_marks_in_child(void *list) { (void)list; }
#else
/* The kernel knows where musl has the thread's list, once it has held a mark. */
void *process_marks_before_fork(void)
{
    struct robust_list_head *head = NULL;
    size_t size = 0;
    return syscall(SYS_get_robust_list, 0, &head, &size) == 0 ? head : NULL;
}

void process_marks_in_child(void *list)
{
    struct robust_list_head *head = list;
    if (head)
        head->list.next = &head->list;
}
#endif
