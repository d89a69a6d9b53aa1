/* Job: copy the words by which an arena says what its ranks do into private memory, by pread.
 * Owns: that copy.
 * Never: maps an arena, believes a number of it before it is checked, keeps its descriptor. */
#ifndef TUTTI_CLI_ARENA_COPY_H
#define TUTTI_CLI_ARENA_COPY_H

#include "arena/arena.h"

/* arena: as of a rank, but base is the copy. Only header, join, seats, sites and the comms below
 * `comms` are in it; all else reads as zero. */
struct arena_copy { struct arena arena; size_t bytes; uint32_t comms, left_out; };

/* 0; or -errno, and in one sentence why it is no arena that this build can read. */
int  arena_copy_take(struct arena_copy *g, int fd, struct text *why);
void arena_copy_drop(struct arena_copy *g);

#endif
