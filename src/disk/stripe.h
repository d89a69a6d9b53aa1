/* Job: move one rank's share of a file in pieces: submit them in order, complete short ones, keep
 *      the first error.
 * Owns: one transfer.
 * Never: opens a file, waits, talks to other ranks. A file that the program has closed meanwhile is
 *        -EBADF; a new file with its number is not written, nor read into the result. */
#ifndef TUTTI_DISK_STRIPE_H
#define TUTTI_DISK_STRIPE_H

#include "os/kept.h"
#include "os/transfer.h"

#include <stdbool.h>

enum { STRIPE_DEPTH = 8, STRIPE_PIECE = 2 << 20, STRIPE_PAGE = 4096 };

/* file: through the page cache. direct: the same file past the cache, or none. at: memory for byte
   0 of the file. For reads it begins on a page, has room up to the next multiple of STRIPE_PAGE
   behind the file's end, and is made present here, piece by piece. */
struct stripe_plan { struct kept file, direct; bool write; char *at; uint64_t from, to; };

struct stripe {
    struct stripe_plan plan;
    struct transfer *transfer;
    uint64_t next;                     /* the first byte that is not submitted */
    uint64_t present;                  /* reads: memory is present up to this byte */
    unsigned busy;                     /* a bit for each piece under way */
    bool idle;                         /* the last look could only wait for pieces under way */
    shared64 *ends;                    /* of transfer_ends: the wait ends when it exceeds `seen` */
    uint64_t seen;
    struct { uint64_t offset; size_t bytes; bool direct; } piece[STRIPE_DEPTH];
    uint64_t moved;                    /* bytes moved so far */
    int error;                         /* the first one, -errno; 0: none */
    uint64_t error_at;                 /* its offset in the file */
    bool indirect;                     /* -EINVAL past the cache (alignment): all go through it */
    bool ended;                        /* the error is that the file ends there */
    bool syncing;
};

/* The part of a file that rank `me` of `ranks` moves: whole units; the last unit may be short. */
void stripe_share(uint64_t size, uint32_t ranks, uint32_t me, uint64_t *from, uint64_t *to);

/* 0. -errno: it has not begun. */
int  stripe_begin(struct stripe *s, const struct stripe_plan *plan);
/* 1: the stripe has ended, maybe with s->error, and no piece is under way. 0: call again. */
int  stripe_advance(struct stripe *s);
/* Starts an fsync after a stripe of writes has ended; stripe_advance ends it. */
void stripe_sync(struct stripe *s, const struct kept *file);
void stripe_end(struct stripe *s);  /* waits for pieces under way; also if it never began */

#endif
