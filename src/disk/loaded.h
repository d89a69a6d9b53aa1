/* Job: know which ranks use the memory of a loaded file; free it after the last one.
 * Owns: in the arena a page behind each file's bytes, in the span of the rank that made room; in
 *       the world the list of this rank's files.
 * Never: reads a file.
 *
 * E75 loaded: a rank stops to read a file's memory, and none of its reads from the disk writes into
 *    it any more; then it clears its bit in `held` (release). The owner of the span loads held
 *    (acquire), and frees the memory when no bit is left. */
#ifndef TUTTI_DISK_LOADED_H
#define TUTTI_DISK_LOADED_H

#include "group/comm.h"

/* Takes room for `bytes`, in whole pages, held by all ranks of comm. Its offset in the arena. 0:
 * *error = -ENOSPC (this rank's span is full), -ENOMEM. Not populated: the readers do that. */
uint64_t loaded_make(struct tutti_comm *comm, uint64_t bytes, int *error);
/* True: an offset from a peer can be right: so many bytes lie in the arena there. */
bool loaded_there(const struct world *world, uint64_t at, uint64_t bytes);
/* Clears this rank's bit. */
void loaded_drop(struct world *world, uint64_t at, uint64_t bytes);
/* An entry for the books, or NULL; to be freed by free(). It is made before this rank says that it
 * can load. */
struct loaded_file *loaded_book(void);
/* give: notes the memory as given to this rank's caller; the books own the entry then. free: takes
 * back memory of loaded_give; 0 or -EINVAL. */
void loaded_give(struct world *world, struct loaded_file *book, const void *data, uint64_t at,
                 uint64_t bytes);
int  loaded_free(struct world *world, const void *data);
/* Frees memory of this rank's span that no rank holds any more. True: there was some. Ranks that
 * have died without a mark hold theirs until somebody finds them. */
bool loaded_reclaim(struct world *world);
/* Memory of this rank's heap, by heap_alloc or heap_alloc_bare. Files that are held no more make
 * room for it. NULL: *error. */
typedef void *heap_take(struct heap *heap, size_t bytes, int *error);
void *loaded_room(struct world *world, size_t bytes, heap_take *take, int *error);
void loaded_close(struct world *world);              /* frees the lists; held memory stays */

#endif
