/* Job: memory of a rank's span for its callers (tutti_alloc): small pieces, pages, huge pages.
 * Owns: nothing shared: the books are private to the rank's process.
 * Never: knows whether a peer still reads what is given back. */
#ifndef TUTTI_ARENA_HEAP_H
#define TUTTI_ARENA_HEAP_H

#include "arena/arena.h"
#include "arena/span.h"

#include <pthread.h>

struct heap;

/* lock guards the span's books; the functions below take it themselves, and hold it for
 * microseconds. NULL: no memory. */
struct heap *heap_open(struct span *span, const struct arena *arena, pthread_mutex_t *lock);
/* the books only: what was handed out stays readable for peers */
void  heap_close(struct heap *heap);

/* 64-byte aligned, populated, not cleared; 2 MiB-aligned and of huge pages where they can be had
   from 4 MiB on. bytes 0 is a place, too. NULL: *error = -ENOSPC (the span is full) or -ENOMEM (the
   system has no pages). */
void *heap_alloc(struct heap *heap, size_t bytes, int *error);
/* The same from whole pages, not populated: for whoever shares that work with others. Up to the
 * caller what happens if there are no pages. */
void *heap_alloc_bare(struct heap *heap, size_t bytes, int *error);
/* What heap_alloc gave; its pages go back to the system. 0, or -EINVAL: nothing that begins there
 * was given out, or it was given back. */
int   heap_free(struct heap *heap, void *ptr);
/* does it lie inside of something given out? */
bool  heap_holds(struct heap *heap, const void *ptr);

/* bytes of all pieces so far that were to be huge pages, and that came to be */
struct heap_figures { uint64_t wished, huge; };
struct heap_figures heap_figures(struct heap *heap);

#endif
