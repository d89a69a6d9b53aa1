/* Job: what loading and saving share: a call's state, and the words in which ranks tell each other
 *      how it went.
 * Owns: struct disk_call; a descriptor or two.
 * Never: the order of a call's steps (load.c, save.c). */
#ifndef TUTTI_DISK_CALL_H
#define TUTTI_DISK_CALL_H

#include "disk/disk.h"
#include "disk/stripe.h"

enum { DISK_AT, DISK_BYTES, DISK_WHICH, DISK_START, DISK_OUTCOME };          /* of arrival.more */

/* What went wrong; the sentences are in call.c. */
enum disk_what {
    DISK_WELL, DISK_OPEN, DISK_KIND, DISK_MEMORY, DISK_READ, DISK_ENDED, DISK_OTHER, DISK_CREATE,
    DISK_ROOM, DISK_WRITE, DISK_SYNC, DISK_RENAME
};

struct disk_call {
    char *path;                        /* as the caller gave it */
    struct kept file, direct;          /* no fd: not open */
    uint64_t size;
    struct stripe stripe;
    bool begun, told;           /* the stripe; this rank's outcome has been given */
    int step;                   /* load.c's, save.c's */
    uint64_t at;                /* load: the memory, 0 none; save, rank 0: where the name stands */
    const void **data;          /* load: the caller's */
    size_t *bytes;
    struct loaded_file *book;   /* load: the entry for the books of this rank, until it is theirs */
    const void *from;           /* save: the caller's */
    char *name, *target;        /* save: the file that is written; what it becomes (rank 0) */
    bool there;                 /* save: `name` may be on the disk, and is not to stay */
    uint64_t wrote;             /* save, rank 0: its outcome until it has told */
};

/* The call in c, with a state of its own: NULL: no memory. Its ways have nothing to choose, and
 * keep what they have: all of it is on the heap. */
struct disk_call *disk_describe(struct coll *c, struct tutti_comm *comm, const char *path,
                                const struct algorithm *algorithm, const struct call_ways *ways);
void disk_choose(struct coll *c);
int  disk_keep(struct coll *c);
/* The end of a call: waits for what is under way, takes away `name` where it is there, closes,
   frees. A disk that does not answer holds up no more than a second of that: false then, the rest
   goes on by itself, and d with all that it points to is its own. */
bool disk_call_end(struct disk_call *d);

/* An outcome in a word: what, -error, where in the file. */
uint64_t disk_outcome(enum disk_what what, int error, uint64_t at);
/* Which file an open one is, in a word that is not 0; 0 never is one. *size too. -errno. */
int disk_which(int fd, uint64_t *which, uint64_t *size);

static inline shared64 *disk_word(const struct coll *c, uint32_t p, int word)
{
    return &watch_arrival(&c->comm->watch, p, c->op.claim.seq)->more[word];
}
/* Peers' words. */
static inline uint64_t disk_said(const struct coll *c, uint32_t p, int word)
{
    return load_relaxed64(disk_word(c, p, word));    /* relaxed: after E1, the outcome after E22 */
}

void disk_say(struct coll *c, int word, uint64_t value);                    /* before the arrival */
void disk_claim(struct coll *c);            /* before it, too: C(k) asks for everybody's `given` */
/* After the gate: the first rank whose start went wrong; -1 none. */
int  disk_failed_start(const struct coll *c);
/* This rank's part is over, so; once. Then disk_all_told: DONE, or WAITING for a rank but for `but`
 * (-1: nobody). */
void disk_tell(struct coll *c, uint64_t outcome);
int  disk_all_told(struct coll *c, int but);
/* The first outcome, by rank, that is not well: -errno, explained; or 0. */
int  disk_judge(struct coll *c);

/* A step further with what the stripe has under way: DONE, or WAITING with the wait set. */
int  disk_transfer(struct coll *c);
/* The stripe of this rank: WAITING, or DONE with *outcome. */
int disk_stripe(struct coll *c, const struct stripe_plan *plan, enum disk_what memory,
                uint64_t *outcome);

#endif
