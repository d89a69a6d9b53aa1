/* The word that says that work is over is a futex, and a ring that can wait for futexes waits for
 * it. The request is filled in by hand: liburing has it from 2.5 on, kernels from 6.7 on. The
 * kernel is asked once per world. */
#include "engine/work.h"
#include "os/caller.h"
#include "os/uring.h"

#include <errno.h>
#include <linux/io_uring.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <tutti_uring.h>

/* IORING_OP_FUTEX_WAIT, FUTEX2_SIZE_U32: our headers may be older */
enum { OP_FUTEX_WAIT = 51, SIZE_32 = 2 };

static bool has_futex(struct world *world)
{
    uint32_t known = load_relaxed32(&world->ring_futex);  /* relaxed: all threads find the same */
    if (!known) {
        known = uring_knows(OP_FUTEX_WAIT) ? 1 : 2;
        store_relaxed32(&world->ring_futex, known);       /* relaxed: as above */
    }
    return known == 1;
}

/* Clears all but user_data. */
static void clear(struct io_uring_sqe *sqe)
{
    uint64_t data = sqe->user_data;
    memset(sqe, 0, sizeof *sqe);
    sqe->user_data = data;
}

static void prep_futex(struct io_uring_sqe *sqe, struct completion *completion)
{
    clear(sqe);
    /* if it is over by now, the word has another value, and the wait ends at once */
    completion_heard(completion);
    sqe->opcode = OP_FUTEX_WAIT;
    sqe->fd = SIZE_32;                          /* not private: the waker does not say so, either */
    sqe->addr = (uint64_t)(uintptr_t)&completion->over;
    sqe->addr2 = COMPLETION_HEARD;                         /* waits while the word is that */
    sqe->addr3 = UINT32_MAX;                    /* any waker */
}

static int prep_event(struct io_uring_sqe *sqe, struct completion *completion,
                      pthread_mutex_t *lock)
{
    int error = 0;
    pthread_mutex_lock(lock);
    if (!completion_over(completion) && !completion->event.file) {
        int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        error = fd < 0 ? -errno : 0;
        completion->event = kept_of(fd);
    }
    struct kept event = completion->event;
    pthread_mutex_unlock(lock);
    if (error < 0)
        return error;
    clear(sqe);
    if (!event.file) {
        sqe->opcode = IORING_OP_NOP;
        return 0;
    }
    sqe->opcode = IORING_OP_POLL_ADD;
    sqe->fd = event.fd;
    sqe->poll32_events = POLLIN;
    return 0;
}

int tutti_uring_prep_wait(struct io_uring_sqe *sqe, tutti_work *work)
{
    CALLER_KEPT;
    if (!sqe || !work)
        return -EINVAL;
    if (completion_over(&work->completion)) {                        /* its comm may be gone */
        clear(sqe);
        sqe->opcode = IORING_OP_NOP;
        return 0;
    }
    if (*work->comm->fork_word != 1)
        return -ECHILD;
    if (!has_futex(work->comm->world))
        return prep_event(sqe, &work->completion, work->shape->lock(work));
    prep_futex(sqe, &work->completion);
    return 0;
}
