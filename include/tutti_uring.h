/* tutti: work awaited in an io_uring of the caller's own, beside its sockets and files.
 *
 * It is for servers that must not sleep in tutti_wait. The work goes on by itself, by tutti's
 * progress thread.
 *
 *     tutti_work *work;
 *     tutti_all_reduce(x, y, n, TUTTI_F32, TUTTI_SUM, world, &(tutti_call){ .work = &work });
 *     struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);
 *     if (tutti_uring_prep_wait(sqe, work) == 0)
 *         io_uring_sqe_set_data(sqe, MINE);
 *     io_uring_submit(&ring);
 *     ...                                // the completion with MINE says that it is over,
 *                                        whatever its res
 *     int error = tutti_wait(work, 0);   // returns at once, and frees the handle
 */
#ifndef TUTTI_URING_H
#define TUTTI_URING_H
/* SPDX-License-Identifier: MIT */

#include <tutti.h>

#ifdef __cplusplus
extern "C" {
#endif

struct io_uring_sqe;                   /* of liburing.h, or linux/io_uring.h */

/* Fills sqe, all but its user_data, so that it completes when the work is over.
 *
 * work: any of tutti_call.work, collectives and messages. It completes at once if the work is over
 * already. The kernel's IORING_OP_FUTEX_WAIT is used where it has it (Linux 6.7), else an eventfd.
 * Do not free the handle (tutti_wait) before that completion has come, or the request has been
 * cancelled. One handle may be awaited several times. Any thread.
 *
 * Errors:
 *     -EINVAL           sqe or work is NULL
 *     -ECHILD           the caller is a fork of the rank
 *     -EMFILE, -ENFILE  no descriptor for an eventfd */
int tutti_uring_prep_wait(struct io_uring_sqe *sqe, tutti_work *work);

#ifdef __cplusplus
}
#endif
#endif
