/* Job: hand out pieces of a rank's own stretch of the arena.
 * Owns: nothing shared: the books are private to the rank's process; only the owner allocates in its span.
 * Never: what the pieces are for. Not thread-safe: the caller holds the world's lock. */
#ifndef TUTTI_ARENA_SPAN_H
#define TUTTI_ARENA_SPAN_H

#include <stddef.h>
#include <stdint.h>

struct span;                                         /* the books */

struct span *span_open(char *base, uint64_t bytes);  /* NULL: no memory for the books */
void  span_close(struct span *span);
/* 4096-aligned, populated (MADV_POPULATE_WRITE): NULL and no later surprise. *error = -ENOMEM (no pages) or -ENOSPC (no addresses). */
void *span_take(struct span *span, size_t bytes, int *error);
void  span_give(struct span *span, void *at);        /* back to the books; the pages stay for reuse */

#endif
