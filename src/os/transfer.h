/* Job: reads, writes and syncs of files that are handed over and end later: to io_uring where the
 *      system lets us, else to threads.
 * Owns: one ring, or a handful of threads; nothing of the files.
 * Never: which piece of what (disk/); waits for a piece, but in transfer_close.
 *
 * One thread at a time calls these for one transfer. */
#ifndef TUTTI_OS_TRANSFER_H
#define TUTTI_OS_TRANSFER_H

#include "base/atomic.h"
#include "os/piece.h"

struct transfer;

/* Room for `depth` pieces at a time, at most TRANSFER_DEPTH. NULL: *error = -ENOMEM, -EAGAIN (no
 * thread could be had). */
enum { TRANSFER_DEPTH = 32 };
struct transfer *transfer_open(unsigned depth, int *error);

/* 0; -EAGAIN: as many as there is room for are under way; -errno: it has not begun. tag comes back
 * with its end. */
int transfer_give(struct transfer *transfer, const struct transfer_piece *piece, unsigned tag);
/* 1 with *end: one has ended; 0: none has since. */
int transfer_take(struct transfer *transfer, struct transfer_end *end);

/* A count that grows when some have ended since, with a wake of all who sleep on its low half: for
   whoever reads it, takes what has ended, and sleeps while it is the same. NULL: this system has no
   means for that, ask again. Before the first call nothing is counted. */
shared64 *transfer_ends(struct transfer *transfer);

/* Waits for what is under way: afterwards nobody touches its memory any more. */
void transfer_close(struct transfer *transfer);

/* "io_uring" or "threads", and why not the first ("" if it is). TUTTI_URING=0 chooses threads. */
const char *transfer_way(const char **why);

#endif
