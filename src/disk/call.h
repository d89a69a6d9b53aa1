/* Job: hold what load and save share: a call's state, and the words by which ranks exchange their
 *      outcomes.
 * Owns: struct disk_call; a descriptor or two.
 * Never: orders a call's steps (load.c, save.c). */
#ifndef TUTTI_DISK_CALL_H
#define TUTTI_DISK_CALL_H

#include "disk/disk.h"
#include "disk/stripe.h"

enum { DISK_AT, DISK_BYTES, DISK_WHICH, DISK_START, DISK_OUTCOME };  /* indices in arrival.more */

/* The step that failed; its sentence is in call.c. */
enum disk_what {
    DISK_WELL, DISK_OPEN, DISK_KIND, DISK_MEMORY, DISK_READ, DISK_ENDED, DISK_OTHER, DISK_CREATE,
    DISK_ROOM, DISK_WRITE, DISK_SYNC, DISK_RENAME
};

struct disk_call {
    char *path;                        /* as the caller gave it */
    struct kept file, direct;          /* no fd: not open */
    uint64_t size;
    struct stripe stripe;
    bool begun, told;           /* the stripe has begun; this rank's outcome is published */
    int step;                   /* of load.c or save.c */
    uint64_t at;                /* offset. load: the memory, 0: none; save, rank 0: the name */
    const void **data;          /* load: the caller's */
    size_t *bytes;
    struct loaded_file *book;   /* load: entry for this rank's books, until they have it */
    const void *from;           /* save: the caller's */
    char *name, *target;        /* save: the file that is written; its final name (rank 0) */
    bool there;                 /* save: `name` may be on the disk, and must be removed */
    uint64_t wrote;             /* save, rank 0: its outcome until it is published */
};

/* Makes the call's state in c. NULL: no memory. All of it is on the heap, so disk_keep has nothing
 * to copy, and disk_choose nothing to choose. */
struct disk_call *disk_describe(struct coll *c, struct tutti_comm *comm, const char *path,
                                const struct algorithm *algorithm, const struct call_ways *ways);
void disk_choose(struct coll *c);
int  disk_keep(struct coll *c);
/* Ends a call: waits for pieces under way, removes `name` if it is there, closes, frees. False: the
   disk did not answer for a second; a thread does the rest, and owns d with all its memory. */
bool disk_call_end(struct disk_call *d);

/* An outcome in one word: what, -error, offset in the file. */
uint64_t disk_outcome(enum disk_what what, int error, uint64_t at);
/* 0; *which: a word that identifies the open file, never 0; *size. Else -errno. */
int disk_which(int fd, uint64_t *which, uint64_t *size);

static inline shared64 *disk_word(const struct coll *c, uint32_t p, int word)
{
    return &watch_arrival(&c->comm->watch, p, c->op.claim.seq)->more[word];
}
/* The word of rank p. */
static inline uint64_t disk_said(const struct coll *c, uint32_t p, int word)
{
    return load_relaxed64(disk_word(c, p, word));    /* relaxed: after E1, the outcome after E22 */
}

void disk_say(struct coll *c, int word, uint64_t value);             /* before the arrival */
void disk_claim(struct coll *c);             /* before the arrival: C(k) asks for all `given` */
/* After the gate: the first rank whose start failed; -1: none. */
int  disk_failed_start(const struct coll *c);
/* Publishes this rank's outcome, once. disk_all_told: DONE, or WAITING for a rank's outcome; rank
 * `but` is left out (-1: none). */
void disk_tell(struct coll *c, uint64_t outcome);
int  disk_all_told(struct coll *c, int but);
/* 0, or the -errno of the lowest rank that failed, with a report. */
int  disk_judge(struct coll *c);

/* Advances the stripe's transfer: DONE, or WAITING with the wait set. */
int  disk_transfer(struct coll *c);
/* Advances this rank's stripe: WAITING, or DONE with *outcome. */
int disk_stripe(struct coll *c, const struct stripe_plan *plan, enum disk_what memory,
                uint64_t *outcome);

#endif
