/* Job: memory of files that are loaded: who still uses it, and its way back.
 * Owns: in the arena a page behind each file's bytes, in the span of the rank that made room; in
 *       the world the list of what this rank has.
 * Never: reads a file.
 *
 * E75 loaded: a rank reads no more of a file's memory, and nothing that it handed over is written
 *    into it any more, then takes its bit out of `held` (release); the rank whose span it is loads
 *    held (acquire), and gives the memory back when nobody is left. */
#ifndef TUTTI_DISK_LOADED_H
#define TUTTI_DISK_LOADED_H

#include "group/comm.h"

/* Room for `bytes` and the rest of the last page, held by all ranks of comm from now on. Its offset
 * in the arena, a multiple of the page; 0: error = -ENOSPC (this rank's span is full), -ENOMEM. Not
 * populated: whoever reads into it does that. */
uint64_t loaded_make(struct tutti_comm *comm, uint64_t bytes, int *error);
/* Could there be so much at that offset? As a peer says it is. */
bool loaded_there(const struct world *world, uint64_t at, uint64_t bytes);
/* This rank's bit out. */
void loaded_drop(struct world *world, uint64_t at, uint64_t bytes);
/* An entry for the books, or NULL; free gives it back. It is made before the others are told that
 * this rank can load. */
struct loaded_file *loaded_book(void);
/* Given to this rank's caller, at that address; the entry is the books' then. loaded_free: what
 * loaded_give gave; 0 or -EINVAL. */
void loaded_give(struct world *world, struct loaded_file *book, const void *data, uint64_t at,
                 uint64_t bytes);
int  loaded_free(struct world *world, const void *data);
/* What nobody holds any more goes back to the span: of what this rank made. True: some did. */
bool loaded_reclaim(struct world *world);
void loaded_close(struct world *world);              /* the lists only: what peers hold stays */

#endif
