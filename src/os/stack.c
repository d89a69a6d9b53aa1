/* The handler may run between any two instructions. So it only does what may be done there: it
 * walks the frames and writes them as text to a file that is there already. It appends, since
 * others may write before it. The file is known by its inode: a program that has closed the number
 * has no stack to show. The walk is the compiler's own, linked with us: the C library's backtrace
 * would have to load it (libgcc_s) at the start of each rank, for a sixth of a millisecond.
 * Cost: a memory file a process; 30 us an answer. */
#include "os/stack.h"

#include "os/kept.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#if __has_include(<execinfo.h>)
#include <execinfo.h>
#include <unwind.h>

struct stack_walk { void **frames; int n, room; };

static _Unwind_Reason_Code stack_frame(struct _Unwind_Context *context, void *arg)
{
    struct stack_walk *walk = arg;
    if (walk->n == walk->room)
        return _URC_END_OF_STACK;
    /* an address, by the unwinder's word */
    walk->frames[walk->n++] = (void *)(uintptr_t)_Unwind_GetIP(context);
    return _URC_NO_REASON;
}

__attribute__((noinline)) static int stack_frames(void **frames, int room)
{
    struct stack_walk walk = { frames, 0, room };
    _Unwind_Backtrace(stack_frame, &walk);
    return walk.n;
}
#else
static int stack_frames(void **frames, int n) { return (void)frames, (void)n, 0; }
static void backtrace_symbols_fd(void *const *frames, int n, int fd)
{
    (void)frames, (void)n, (void)fd;
}
#endif

/* OWN: the walk, the handler, and how it was called */
enum { STACK_FRAMES = 48, STACK_OWN = 3, STACK_FD_LEAST = 100 };

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
        int n = stack_frames(frames, STACK_FRAMES), own = n > STACK_OWN ? STACK_OWN : 0;
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
    sigemptyset(&answer.sa_mask);
    sigaction(STACK_SIGNAL, &answer, NULL);
}
