/* Three system calls and the translation of their errors. No private flag anywhere: the sleepers
 * are in other processes. A plain wait takes a relative time (the kernel measures it on
 * CLOCK_MONOTONIC, and keeps what is left of it over a stop), so it costs no read of the clock;
 * futex_waitv (Linux 5.16) knows absolute times only.
 * Cost: about 0.5 us in and out when the word has changed already, about 110 ns for each
 *       further word. */
#include "os/futex.h"

#include "base/clock.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Declared here, because headers older than 5.16 lack the number (the same on every architecture)
 * and the struct. */
enum { NUMBER_OF_FUTEX_WAITV = 449, WORD_OF_32_BITS = 2 };

struct watched { uint64_t value, address; uint32_t flags, reserved; };
struct long_time { int64_t seconds, ns; };

static long futex_call(shared32 *word, int what, uint32_t value, const struct timespec *timeout)
{
    return syscall(SYS_futex, word, what, value, timeout, NULL, 0);
}

int futex_wait(shared32 *word, uint32_t seen, uint64_t timeout_ns)
{
    struct timespec timeout = { (time_t)(timeout_ns / 1000000000u),
                                (long)(timeout_ns % 1000000000u) };
    if (futex_call(word, FUTEX_WAIT, seen, &timeout) == 0 || errno == EAGAIN)
        return 0;
    return -errno;
}

int futex_wait_any(const struct futex_word *words, int n, uint64_t timeout_ns)
{
    struct watched watched[FUTEX_WORDS];
    if (n < 1 || n > FUTEX_WORDS)
        return -EINVAL;
    for (int i = 0; i < n; i++)
        watched[i] = (struct watched){ words[i].seen, (uintptr_t)words[i].word, WORD_OF_32_BITS,
                                       0 };
    uint64_t now = clock_ns();
    uint64_t end = timeout_ns > (uint64_t)INT64_MAX - now ? (uint64_t)INT64_MAX : now + timeout_ns;
    struct long_time until = { (int64_t)(end / 1000000000u), (int64_t)(end % 1000000000u) };
    if (syscall(NUMBER_OF_FUTEX_WAITV, watched, n, 0, &until, CLOCK_MONOTONIC) >= 0
        || errno == EAGAIN)
        return 0;
    return errno == EPERM ? -ENOSYS : -errno;
}

/* Restores errno: it is called in signal handlers, and the interrupted code may read its errno. */
int futex_wake(shared32 *word, int n)
{
    int saved = errno;
    long woken = futex_call(word, FUTEX_WAKE, (uint32_t)n, NULL);
    int result = woken < 0 ? -errno : (int)woken;
    errno = saved;
    return result;
}
