/* Job: one io_uring, for os/transfer.
 * Owns: the ring.
 * Never: decides whether to use it. A build without liburing has uring_stub.c instead, where
 *        nothing can be opened. */
#ifndef TUTTI_OS_URING_H
#define TUTTI_OS_URING_H

#include "os/piece.h"

#include <stdbool.h>

struct uring;

/* NULL: *error = -ENOSYS, -EPERM (forbidden), -ENOMEM … */
struct uring *uring_open(unsigned depth, int *error);
bool uring_knows(int request);  /* true: the kernel has this request; false also without rings */
int  uring_give(struct uring *ring, const struct transfer_piece *piece, unsigned tag);
int  uring_take(struct uring *ring, struct transfer_end *end);
/* Makes this eventfd count the ends from now on. 0 or -errno. */
int  uring_event(struct uring *ring, int event);
void uring_wait(struct uring *ring);                    /* until a piece has ended */
void uring_close(struct uring *ring);                   /* only if no piece is under way */

#endif
