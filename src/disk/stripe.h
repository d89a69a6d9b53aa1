/* Job: one rank's share of a file: pieces handed over one behind the other, short ones completed,
 *      the first error kept.
 * Owns: one transfer.
 * Never: opens a file, waits, speaks with other ranks. A file that the program has closed meanwhile
 *        is -EBADF, and what has its number by then
 * is neither read into the result nor written. */
#ifndef TUTTI_DISK_STRIPE_H
#define TUTTI_DISK_STRIPE_H

#include "os/kept.h"
#include "os/transfer.h"

#include <stdbool.h>

enum { STRIPE_DEPTH = 8, STRIPE_PIECE = 2 << 20, STRIPE_PAGE = 4096 };

/* file through the page cache. direct: the same file past it, none: cannot be had. at: where byte 0
   of the file lies in memory; for reads it has room up to the next multiple of STRIPE_PAGE behind
   the file's end, begins on a page, and is made present here, piece by piece. */
struct stripe_plan { struct kept file, direct; bool write; char *at; uint64_t from, to; };

struct stripe {
    struct stripe_plan plan;
    struct transfer *transfer;
    uint64_t next;                     /* the first byte that has not been handed over */
    uint64_t present;                  /* reads: memory is there up to this byte */
    unsigned busy;                     /* a bit for each piece under way */
    /* at the last look there was nothing to do but to wait for what is under way … */
    bool idle;
    /* … with this grown to more than `seen`; NULL: ask again (transfer_ends) */
    shared64 *ends;
    uint64_t seen;
    struct { uint64_t offset; size_t bytes; bool direct; } piece[STRIPE_DEPTH];
    uint64_t moved;                    /* bytes that are where they belong */
    int error;                         /* the first, -errno; with where in the file */
    uint64_t error_at;
    bool indirect;                     /* what can be had past the cache wants more than we know */
    bool ended;                        /* the error is that the file ends there */
    bool syncing;
};

/* The part of a file of that size that rank `me` of `ranks` reads or writes: whole units, the last
 * one's rest to whoever has it. */
void stripe_share(uint64_t size, uint32_t ranks, uint32_t me, uint64_t *from, uint64_t *to);

/* 0 or -errno: nothing has begun. */
int  stripe_begin(struct stripe *s, const struct stripe_plan *plan);
/* 1: over, well or with s->error; nothing is under way then. 0: ask again. */
int  stripe_advance(struct stripe *s);
/* After a stripe of writes is over: fsync, ended by stripe_advance as well. */
void stripe_sync(struct stripe *s, const struct kept *file);
void stripe_end(struct stripe *s);  /* waits for what is under way; also for one that never began */

#endif
