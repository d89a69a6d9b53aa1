/* Job: allocate whole pages in a rank's own part of the arena.
 * Owns: nothing shared: the books are private to the rank's process; only the owner allocates
 *       in its span.
 * Never: allocates small pieces (heap.h); takes a lock: the caller holds the world's lock. */
#ifndef TUTTI_ARENA_SPAN_H
#define TUTTI_ARENA_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct span;                                         /* the books */

/* Use of a piece. GOING: its pages go back to the system now; it cannot be taken yet. */
enum span_use { SPAN_FREE, SPAN_STAGING, SPAN_CALLER, SPAN_SLAB, SPAN_ADOPTED, SPAN_GOING };

struct span_piece { char *at; uint64_t bytes; enum span_use use; void *owner; };

struct span *span_open(char *base, uint64_t bytes);  /* NULL: no memory for the books */
void  span_close(struct span *span);

/* Takes the first place that fits: whole pages (memory_page, 4096 at least), from 2 MiB on
   2 MiB-aligned if the span has such a place; not populated. NULL: *error = -ENOSPC (no addresses)
   or -ENOMEM (no memory for the books). */
void *span_reserve(struct span *span, size_t bytes, enum span_use use, int *error);
/* The piece that ptr lies in, used or free; false: not in this span. */
bool  span_find(const struct span *span, const void *ptr, struct span_piece *piece);
/* The first piece; the next one begins at its end. */
bool  span_first(const struct span *span, struct span_piece *piece);
/* Changes the use of the piece that begins at `at`. */
void  span_mark(struct span *span, void *at, enum span_use use, void *owner);

/* span_reserve for staging, populated: a lack of pages is an error now and no SIGBUS later. *error
 * = -ENOMEM also for no pages. */
void *span_take(struct span *span, size_t bytes, int *error);
/* Gives a piece back; its pages stay present, for reuse. */
void  span_give(struct span *span, void *at);

#endif
