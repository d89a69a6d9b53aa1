/* The handler may run between any two instructions. So it only does what may be done there: it
 * walks the frames (after a first walk at the beginning, which loads what that needs) and writes
 * them as text to a file that is there already. It appends, since others may write before it. The
 * file is known by its inode: a program that has closed the number has no stack to show.
 * Cost: a memory file a process; 30 us an answer. */
#include "os/stack.h"

#include "os/kept.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#if __has_include(<execinfo.h>)
#include <execinfo.h>
#else
static int backtrace(void **frames, int n) { return (void)frames, (void)n, 0; }
static void backtrace_symbols_fd(void *const *frames, int n, int fd)
{
    (void)frames, (void)n, (void)fd;
}
#endif

/* OWN: the handler, and how it was called */
enum { STACK_FRAMES = 48, STACK_OWN = 2, STACK_FD_LEAST = 100 };

static struct kept stack_file = { .fd = -1 };        /* before the handler; never changes again */

static void stack_answer(int number)
{
    int error = errno;
    struct stat st;
    void *frames[STACK_FRAMES];
    (void)number;
    if (kept_is(&stack_file) && fstat(stack_file.fd, &st) == 0) {
        if (st.st_size > STACK_MOST && ftruncate(stack_file.fd, 0) < 0)
            st.st_size = 0;
        int n = backtrace(frames, STACK_FRAMES), own = n > STACK_OWN ? STACK_OWN : 0;
        backtrace_symbols_fd(frames + own, n - own, stack_file.fd);
        /* the last word: the asker waits for it */
        if (write(stack_file.fd, "end\n", 4) < 0)
            st.st_size = 0;
    }
    errno = error;
}

void stack_begin(void)
{
    struct sigaction before, answer = { .sa_handler = stack_answer,
                                        .sa_flags = SA_RESTART | SA_ONSTACK };
    void *frame[1];
    if (sigaction(STACK_SIGNAL, NULL, &before) < 0 || before.sa_handler != SIG_DFL)
        return;
    int made = memfd_create(STACK_FILE, MFD_CLOEXEC);
    int fd = made < 0 ? -1 : fcntl(made, F_DUPFD_CLOEXEC, STACK_FD_LEAST);
    if (made >= 0)
        close(made);
    if (fd < 0)
        return;
    fcntl(fd, F_SETFL, O_APPEND);
    stack_file = kept_of(fd);
    backtrace(frame, 1);
    sigemptyset(&answer.sa_mask);
    sigaction(STACK_SIGNAL, &answer, NULL);
}
