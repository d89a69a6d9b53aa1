/* Job: asynchronous reads, writes and syncs of files: by io_uring if the system allows, else by
 *      threads.
 * Owns: one ring, or a handful of threads; nothing of the files.
 * Never: chooses pieces (disk/); waits for a piece, but in transfer_close.
 *
 * One thread at a time calls these for one transfer. */
#ifndef TUTTI_OS_TRANSFER_H
#define TUTTI_OS_TRANSFER_H

#include "base/atomic.h"
#include "os/piece.h"

struct transfer;

/* depth: most pieces under way, at most TRANSFER_DEPTH. NULL: *error = -ENOMEM, -EAGAIN (no
 * thread). */
enum { TRANSFER_DEPTH = 32 };
struct transfer *transfer_open(unsigned depth, int *error);

/* Submits a piece; its end has the same tag. 0. -EAGAIN: `depth` pieces are under way. -errno: it
 * has not begun. */
int transfer_give(struct transfer *transfer, const struct transfer_piece *piece, unsigned tag);
/* 1: a piece has ended, see *end. 0: none. */
int transfer_take(struct transfer *transfer, struct transfer_end *end);

/* A count that grows with ended pieces; sleepers on its low half are woken. The caller reads it,
   takes all ends, and sleeps while it is unchanged. NULL: the system has no means for this; call
   transfer_take again later. Counts from the first call on. */
shared64 *transfer_ends(struct transfer *transfer);

/* Waits for all pieces under way: afterwards their memory is not touched any more. */
void transfer_close(struct transfer *transfer);

/* "io_uring" or "threads"; *why: the reason against io_uring, "" if none. TUTTI_URING=0 chooses
 * threads. */
const char *transfer_way(const char **why);

#endif
