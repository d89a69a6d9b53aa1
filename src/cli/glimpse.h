/* Job: copy the words by which an arena says what its ranks do into private memory, by pread.
 * Owns: that copy.
 * Never: maps an arena, believes a number of it before it is checked, keeps its descriptor. */
#ifndef TUTTI_CLI_GLIMPSE_H
#define TUTTI_CLI_GLIMPSE_H

#include "arena/arena.h"

/* arena: as of a rank, but base is the copy. Only header, join, seats, sites and the comms below
 * `comms` are in it; all else reads as zero. */
struct glimpse { struct arena arena; size_t bytes; uint32_t comms, left_out; };

/* 0; or -errno, and in one sentence why it is no arena that this build can read. */
int  glimpse_take(struct glimpse *g, int fd, struct text *why);
void glimpse_drop(struct glimpse *g);

#endif
