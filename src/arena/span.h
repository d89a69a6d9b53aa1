/* Job: hand out stretches of whole pages of a rank's own part of the arena.
 * Owns: nothing shared: the books are private to the rank's process; only the owner allocates
 *       in its span.
 * Never: small pieces (heap.h), what the pieces are for. Not thread-safe: the caller holds the
 *        world's lock. */
#ifndef TUTTI_ARENA_SPAN_H
#define TUTTI_ARENA_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct span;                                         /* the books */

/* Who a piece belongs to. GOING: its pages are on their way back to the system, and nobody may have
 * them yet. */
enum span_use { SPAN_FREE, SPAN_STAGING, SPAN_CALLER, SPAN_SLAB, SPAN_ADOPTED, SPAN_GOING };

struct span_piece { char *at; uint64_t bytes; enum span_use use; void *owner; };

struct span *span_open(char *base, uint64_t bytes);  /* NULL: no memory for the books */
void  span_close(struct span *span);

/* 4096-aligned, 2 MiB-aligned from that size on where the span has such a place; not populated.
   NULL: *error = -ENOSPC (no addresses) or -ENOMEM (no memory for the books). Deterministic: the
   first place that fits. */
void *span_reserve(struct span *span, size_t bytes, enum span_use use, int *error);
/* The piece that ptr lies in, used or free; false: not in this span. */
bool  span_find(const struct span *span, const void *ptr, struct span_piece *piece);
/* the one in front; the next is at its end */
bool  span_first(const struct span *span, struct span_piece *piece);
/* Says anew what the piece that begins at `at` is used for. */
void  span_mark(struct span *span, void *at, enum span_use use, void *owner);

/* Staging: as above and populated (MADV_POPULATE_WRITE), so NULL and no later surprise; *error =
 * -ENOMEM also for no pages. */
void *span_take(struct span *span, size_t bytes, int *error);
/* back to the books; the pages are as they are, for reuse */
void  span_give(struct span *span, void *at);

#endif
