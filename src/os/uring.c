/* Each transfer has a ring of its own, made in some 30 us, which is little beside a file. Plain
 * reads and writes: the submitting thread copies bytes that are in the page cache; the kernel does
 * the rest later. Memory is not registered with the ring: that saves pinning only for pages used
 * more than once, and each page here is used once. To register a whole stripe would also lose its
 * huge pages.
 * Cost: a system call for each piece. */
#include "os/uring.h"

#include "os/kept.h"

#include <errno.h>
#include <liburing.h>
#include <sched.h>
#include <stdlib.h>

enum { AT_ONCE = 1 << 30 };            /* most bytes of one operation: its result is an int */

struct uring { struct io_uring ring; struct kept file; };

/* Some sandboxes let a process make a ring but not use it. */
static int try_it(struct io_uring *ring)
{
    struct io_uring_cqe *cqe;
    io_uring_prep_nop(io_uring_get_sqe(ring));
    int r = io_uring_submit_and_wait(ring, 1);
    if (r < 0)
        return r;
    if (io_uring_peek_cqe(ring, &cqe) != 0)
        return -EIO;
    io_uring_cqe_seen(ring, cqe);
    return 0;
}

struct uring *uring_open(unsigned depth, int *error)
{
    struct uring *ring = calloc(1, sizeof *ring);
    *error = ring ? io_uring_queue_init(depth, &ring->ring, 0) : -ENOMEM;
    if (*error == 0 && (*error = try_it(&ring->ring)) < 0)
        io_uring_queue_exit(&ring->ring);
    if (*error < 0) {
        free(ring);
        return NULL;
    }
    ring->file = kept_of(ring->ring.ring_fd);
    return ring;
}

bool uring_knows(int request)
{
    struct io_uring_probe *probe = io_uring_get_probe();
    bool known = probe && io_uring_opcode_supported(probe, request);
    if (probe)
        io_uring_free_probe(probe);
    return known;
}

int uring_give(struct uring *ring, const struct transfer_piece *piece, unsigned tag)
{
    struct io_uring_sqe *sqe = kept_is(&ring->file) ? io_uring_get_sqe(&ring->ring) : NULL;
    unsigned bytes = piece->bytes < AT_ONCE ? (unsigned)piece->bytes : AT_ONCE;
    if (!sqe)
        return kept_is(&ring->file) ? -EAGAIN : -EBADF;
    if (piece->kind == TRANSFER_SYNC)
        io_uring_prep_fsync(sqe, piece->fd, 0);
    else if (piece->kind == TRANSFER_READ)
        io_uring_prep_read(sqe, piece->fd, piece->at, bytes, piece->offset);
    else
        io_uring_prep_write(sqe, piece->fd, piece->at, bytes, piece->offset);
    io_uring_sqe_set_data64(sqe, tag);
    io_uring_submit(&ring->ring);   /* busy: it goes with the next one, or when ends are taken */
    return 0;
}

int uring_take(struct uring *ring, struct transfer_end *end)
{
    struct io_uring_cqe *cqe;
    if (io_uring_sq_ready(&ring->ring) && kept_is(&ring->file))
        io_uring_submit(&ring->ring);
    if (io_uring_peek_cqe(&ring->ring, &cqe) != 0)
        return 0;
    *end = (struct transfer_end){ (unsigned)io_uring_cqe_get_data64(cqe), cqe->res };
    io_uring_cqe_seen(&ring->ring, cqe);
    return 1;
}

int uring_event(struct uring *ring, int event)
{
    return kept_is(&ring->file) ? io_uring_register_eventfd(&ring->ring, event) : -EBADF;
}

void uring_wait(struct uring *ring)
{
    struct io_uring_cqe *cqe;
    /* what has been asked for ends all the same, and is shown in memory */
    if (!kept_is(&ring->file)) {
        sched_yield();
        return;
    }
    io_uring_submit(&ring->ring);
    io_uring_wait_cqe(&ring->ring, &cqe);
}

void uring_close(struct uring *ring)
{
    if (!kept_is(&ring->file))
        /* its memory is given back; the number is another's */
        ring->ring.ring_fd = ring->ring.enter_ring_fd = -1;
    io_uring_queue_exit(&ring->ring);
    free(ring);
}
