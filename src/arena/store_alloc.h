/* Job: allocate and free blocks of the store; rebuild its books after a death.
 * Owns: the blocks of the store and the books over them, under its lock.
 * Never: knows a block's content or its users.
 *
 * Each block begins with its length, so the blocks are a chain from the first to `grown`. The last
 * store of each change keeps that chain whole. A block is in use if a chain of the store leads to
 * it, else free. So a holder may die anywhere: store_alloc_forget, store_alloc_keep for each block
 * in a chain, and store_alloc_rebuild make the books again.
 *
 * E33 block: a writer stores a block's header, then the word that leads to it: the length of the
 *    one before, or `grown` (release). A repair loads that (acquire), then the header. All is under
 *    the lock; the order counts if the writer dies between two stores. */
#ifndef TUTTI_ARENA_STORE_ALLOC_H
#define TUTTI_ARENA_STORE_ALLOC_H

#include "arena/layout.h"

#include <stdbool.h>

#define STOCK_USED UINT64_C(1)
enum { STOCK_UNIT = 32 };

/* the blocks: bytes first … end of the store */
struct store_alloc { struct store *store; uint64_t first, end; };

static inline struct store_alloc store_alloc_of(struct store *store, uint64_t store_bytes)
{
    return (struct store_alloc){ store, store_blocks_at(store_bytes), store_bytes };
}

static inline struct store_block *store_alloc_block(const struct store_alloc *h, uint64_t at)
{
    return (struct store_block *)(void *)((char *)h->store + at);
}

/* The end of the blocks; at most the end of the store, even if `grown` is damaged. */
static inline uint64_t store_alloc_grown(const struct store_alloc *h)
{
    uint64_t grown = load_acquire64(&h->store->grown);               /* E33 acquire */
    return grown <= h->end - h->first ? h->first + grown : h->end;
}
/* E33 acquire */
static inline uint64_t store_alloc_bytes(const struct store_block *b)
{
    return load_acquire64(&b->bytes) & ~STOCK_USED;
}

/* E33 acquire */
static inline bool store_alloc_used(const struct store_block *b)
{
    return load_acquire64(&b->bytes) & STOCK_USED;
}

/* True: there can be a block at `at`, by its header. To be asked of every place read from the
 * store. */
bool store_alloc_sound(const struct store_alloc *h, uint64_t at);
/* Marks the store as damaged: all calls refuse it from now on. */
void store_alloc_damaged(const struct store_alloc *h);

/* Takes a block of at least `bytes`, header included, with its pages. 0: *error = -ENOSPC (no free
   block), -ENOMEM (no pages), -EIO (damaged). Cost: a handful of loads; linear in the free blocks
   of that size class if no other is left. */
uint64_t store_alloc_take(const struct store_alloc *h, uint64_t bytes, int *error);
void store_alloc_give(const struct store_alloc *h, uint64_t at);

/* The three steps of a repair. If the repairer dies, the next one begins again. 0, or -EIO: the
 * store was written over. */
int  store_alloc_forget(const struct store_alloc *h);               /* marks all blocks as unused */
int  store_alloc_keep(const struct store_alloc *h, uint64_t at);    /* marks this one as used */
void store_alloc_rebuild(const struct store_alloc *h);              /* frees the unused blocks */

#endif
