/* Job: the file of a black box: what a job's arena said at one moment, and what the system knew of
 *      its ranks, in one piece of memory that can be written and read again.
 * Owns: its bytes.
 * Never: holds what a buffer or the job's store holds; believes a number of a file.
 *
 *   [ box_head ]  then, one behind the other, up to head.bytes:  [ box_part ][ its bytes ]
 *
 * Parts are of BOX_ALIGN bytes or a multiple. Those of the arena are pages of it that are not all
 * zero, in order. A reader wants the format's version, the size, and the sum to be right; what is
 * in an arena's page it checks as if it were a live arena's. */
#ifndef TUTTI_BOX_BOX_H
#define TUTTI_BOX_BOX_H

#include "box/arena_copy.h"

#include <stdbool.h>

enum {
    BOX_VERSION = 1, BOX_ALIGN = 16, BOX_TEXT = 16384,
    BOX_COMMS = 16 << 20,             /* bytes of comms; the oldest come first */
    BOX_MOST = 32 << 20               /* of a file */
};
#define BOX_MAGIC "tutti black box\n"

struct box_head {
    char magic[16];
    uint32_t version, spare;
    uint64_t bytes;                   /* of the file */
    uint64_t sum;                     /* of all behind this head */
    uint64_t room;
};

enum box_kind { BOX_ARENA, BOX_MOMENT, BOX_RANKS, BOX_HOST, BOX_REPORT };
/* place: of a part of the arena, its offset there */
struct box_part { uint32_t kind, spare; uint64_t bytes, place, room; };

enum box_writer { BOX_BY_LAUNCHER, BOX_BY_RANK, BOX_BY_ONLOOKER };

/* When the arena was copied, and by whom. Times are of the machine's clocks. */
struct box_moment {
    uint64_t tick, ns, wall_ns;       /* wall_ns: since 1970 */
    uint64_t arena_bytes;
    uint32_t by, rank;                /* enum box_writer; the rank that wrote it */
    uint32_t uid;                     /* whose the job is */
    int32_t pid;                      /* of the writer */
    uint32_t left_out;                /* comms that there was no room for */
    uint32_t spare[3];
};

/* A rank's process at that moment. */
struct box_rank {
    int32_t pid, tid;                 /* 0: none was seen */
    uint32_t gone;                    /* 1: its pid was nobody's any more */
    uint32_t ended;                   /* how it ended: wait status << 1 | 1; 0: not known */
    uint64_t cpu_ns, read_ns;
    char state[16];                   /* "running" …; "": not known */
    char kernel[80];                  /* where in the kernel; "": nowhere, or not known */
};

_Static_assert(sizeof(struct box_head) % BOX_ALIGN == 0 && sizeof(struct box_part) % BOX_ALIGN == 0
                   && sizeof(struct box_moment) % BOX_ALIGN == 0
                   && sizeof(struct box_rank) % BOX_ALIGN == 0,
               "all of a file is aligned");

/* host: lines "name: value". report: lines. */
struct box_contents {
    struct arena_copy *copy;
    struct box_moment moment;
    const struct box_rank *ranks;     /* [size of the world] */
    const char *host, *report;
};

struct box_bytes { char *at; size_t n; };

/* Makes the bytes of a file; `left_out` of the moment is set here. The copy loses the small
 * contributions that it has. 0 or -ENOMEM. */
int  box_make(struct box_bytes *b, const struct box_contents *c);

/* A file that was read. The pointers are into its bytes; texts end with 0. */
struct box {
    struct box_bytes bytes;
    const struct box_moment *moment;
    const struct box_rank *ranks;
    uint32_t size;                    /* of `ranks` */
    const char *host, *report;
};

/* 0; or -errno, and in one sentence why it is no box that this build can read. */
int  box_read(struct box *b, const char *path, struct text *why);
/* The same of bytes in memory, aligned as malloc aligns. They become b's on success. */
int  box_open(struct box *b, const struct box_bytes *bytes, struct text *why);
void box_drop(struct box *b);
/* The arena in it. */
struct arena_bytes box_arena(const struct box *b);

#endif
