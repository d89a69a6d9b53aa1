/* write() to a pipe, a terminal or a socket may block as long as its reader does not read. All
 * processes that have it open share its mode, so we do not make it non-blocking. A thread writes,
 * with all signals blocked: a SIGPIPE stays pending there and ends with the thread. The caller
 * waits a tenth of a second for it, so texts stay in order if the reader reads, and then goes on.
 * Without a thread it writes one page at most, if poll says that there is room.
 * Cost: a thread for each text. */
#include "os/say.h"

#include "base/atomic.h"
#include "base/clock.h"
#include "os/futex.h"
#include "os/thread.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SAYING = 0, SAID = 1, LEFT = 2 };

struct text_said { shared32 state; size_t bytes; char text[]; };

static shared32 saying;                /* pid whose thread writes; 0, or a parent's pid: none */

static void *say_write(void *arg)
{
    struct text_said *said = arg;
    size_t done = 0;
    while (done < said->bytes) {
        ssize_t n = write(STDERR_FILENO, said->text + done, said->bytes - done);
        if (n > 0)
            done += (size_t)n;
        else if (n < 0 && errno != EINTR)
            break;
    }
    store_release32(&saying, 0);
    uint32_t seen = SAYING;
    if (swap_if32(&said->state, &seen, SAID))
        futex_wake(&said->state, 1);
    else
        free(said);
    return NULL;
}

/* Without a thread: writes one page at most, if there is room for it. */
static void say_piece(const char *text, size_t bytes)
{
    struct pollfd to = { STDERR_FILENO, POLLOUT, 0 };
    sigset_t pipe, before, pending;
    if (poll(&to, 1, 0) != 1 || !(to.revents & POLLOUT))
        return;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    sigpending(&pending);
    pthread_sigmask(SIG_BLOCK, &pipe, &before);
    ssize_t n = write(STDERR_FILENO, text, bytes < PIPE_BUF ? bytes : PIPE_BUF);
    if (n < 0 && errno == EPIPE && !sigismember(&pending, SIGPIPE))
        sigtimedwait(&pipe, NULL, &(struct timespec){ 0, 0 });
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static bool say_by_thread(const char *text, size_t bytes)
{
    struct text_said *said = malloc(sizeof *said + bytes);
    pthread_t thread;
    if (!said)
        return false;
    said->bytes = bytes;
    memcpy(said->text, text, bytes);
    store_release32(&said->state, SAYING);
    if (thread_start(&thread, say_write, said) < 0) {
        free(said);
        return false;
    }
    pthread_detach(thread);
    uint64_t began = clock_ns(), passed = 0;
    while (load_acquire32(&said->state) == SAYING && (passed = clock_ns() - began) < SAY_MOST_NS)
        futex_wait(&said->state, SAYING, SAY_MOST_NS - passed);
    uint32_t seen = SAYING;
    if (!swap_if32(&said->state, &seen, LEFT))
        free(said);
    return true;
}

void say(const char *text, size_t bytes)
{
    uint32_t self = (uint32_t)getpid(), seen = load_acquire32(&saying);
    if (seen == self || !swap_if32(&saying, &seen, self))
        return;
    if (!say_by_thread(text, bytes)) {
        say_piece(text, bytes);
        store_release32(&saying, 0);
    }
}
