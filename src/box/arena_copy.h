/* Job: copy the words by which an arena says what its ranks do into private memory: by pread from a
 *      live one, or from whatever else has its bytes.
 * Owns: that copy.
 * Never: maps an arena, believes a number of it before it is checked, keeps its descriptor. */
#ifndef TUTTI_BOX_ARENA_COPY_H
#define TUTTI_BOX_ARENA_COPY_H

#include "arena/arena.h"

/* Where an arena's bytes are. read: fills to[0 … bytes) from the arena's byte `at` on; what is not
   there becomes zero. 0 or -errno. bytes: of the whole arena. */
struct arena_bytes {
    int (*read)(const struct arena_bytes *from, char *to, uint64_t at, uint64_t bytes);
    uint64_t bytes;
    int fd;
    const void *held;
};

/* 0; or -errno, and in a sentence why its size cannot be read. */
int arena_bytes_of(struct arena_bytes *from, int fd, struct text *why);

/* arena: as of a rank, but base is the copy. Only header, join, seats, sites and the comms below
 * `comms` are in it; all else reads as zero. left_out: comms that there was no room for. */
struct arena_copy { struct arena arena; size_t bytes; uint32_t comms, left_out; };

enum { ARENA_COPY_MOST = 64 << 20 };              /* bytes of comms */

/* most: bytes of comms. 0; or -errno, and in one sentence why it is no arena that this build can
 * read. */
int  arena_copy_from(struct arena_copy *g, const struct arena_bytes *from, uint64_t most,
                     struct text *why);
int  arena_copy_take(struct arena_copy *g, int fd, struct text *why);
void arena_copy_drop(struct arena_copy *g);

#endif
