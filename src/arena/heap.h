/* Job: memory of a rank's span for its callers (tutti_alloc): small pieces, pages, huge pages.
 * Owns: nothing shared: the books are private to the rank's process.
 * Never: knows whether a peer still reads what is given back. */
#ifndef TUTTI_ARENA_HEAP_H
#define TUTTI_ARENA_HEAP_H

#include "arena/arena.h"
#include "arena/span.h"

#include <pthread.h>

struct heap;

/* lock: guards the span's books; all functions below take it, for microseconds. NULL: no memory. */
struct heap *heap_open(struct span *span, const struct arena *arena, pthread_mutex_t *lock);
/* Frees the books only: peers may still read the memory. */
void  heap_close(struct heap *heap);

/* Memory, 64-byte aligned, populated, not cleared. From 4 MiB on it is 2 MiB-aligned, with huge
   pages if the system has some. bytes 0 has an address, too. NULL: *error = -ENOSPC (the span is
   full) or -ENOMEM (the system has no pages). */
void *heap_alloc(struct heap *heap, size_t bytes, int *error);
/* The same in whole pages, not populated: the caller populates them, and handles a lack of pages.
 * */
void *heap_alloc_bare(struct heap *heap, size_t bytes, int *error);
/* Frees memory of heap_alloc; its pages go back to the system. 0. -EINVAL: no piece in use begins
 * at ptr. */
int   heap_free(struct heap *heap, void *ptr);
/* True: ptr lies in a piece in use. */
bool  heap_holds(struct heap *heap, const void *ptr);

/* bytes of all pieces so far for which huge pages were asked; bytes that got them */
struct heap_figures { uint64_t wished, huge; };
struct heap_figures heap_figures(struct heap *heap);

#endif
