/* Job: the memory of the store: stretches taken and given back, and books that can be made anew
 *      at any moment.
 * Owns: the blocks of the store and the books over them, under its lock.
 * Never: what is in a block, who may still need it.
 *
 * Each block begins with its length, so that the blocks are a chain from the first to `grown`;
 * every change keeps that chain whole by ending in one store. Which blocks are in use is known from
 * the store's chains alone: what no chain leads to is free. So a taker or giver may die anywhere:
 * store_alloc_forget, store_alloc_keep for each block that is led to, and store_alloc_rebuild make
 * the rest out of these two.
 *
 * E33 block: a block's header, then the word that leads to it: the length of the one before, or
 *    `grown` (release). A repair loads that (acquire), then the header. All is under the lock; the
 *    release is for a writer that dies between two stores, whose stores must have been made in
 *    this order. */
#ifndef TUTTI_ARENA_STORE_ALLOC_H
#define TUTTI_ARENA_STORE_ALLOC_H

#include "arena/layout.h"

#include <stdbool.h>

#define STOCK_USED UINT64_C(1)
enum { STOCK_UNIT = 32 };

/* the blocks' stretch, from the store's first byte */
struct store_alloc { struct store *store; uint64_t first, end; };

static inline struct store_alloc store_alloc_of(struct store *store, uint64_t store_bytes)
{
    return (struct store_alloc){ store, store_blocks_at(store_bytes), store_bytes };
}

static inline struct store_block *store_alloc_block(const struct store_alloc *h, uint64_t at)
{
    return (struct store_block *)(void *)((char *)h->store + at);
}

/* Where the blocks end; never behind the store, whatever stands there. */
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

/* Can there be a block at `at`, as its header says? Asked of every place that is read out of
 * the store. */
bool store_alloc_sound(const struct store_alloc *h, uint64_t at);
/* What was found cannot be true: the store is refused from now on. */
void store_alloc_damaged(const struct store_alloc *h);

/* A block of at least that many bytes, its header included; its pages are present. 0: *error =
   -ENOSPC (no such stretch is free), -ENOMEM (the system has no pages), -EIO (it is damaged). A
   handful of loads; linear in the free blocks of like size where nothing else is left. */
uint64_t store_alloc_take(const struct store_alloc *h, uint64_t bytes, int *error);
void store_alloc_give(const struct store_alloc *h, uint64_t at);

/* The three steps of a repair; it may die, too, and be begun again. 0, or -EIO: somebody has
 * written over it. */
int  store_alloc_forget(const struct store_alloc *h);               /* nothing is in use */
int  store_alloc_keep(const struct store_alloc *h, uint64_t at);    /* this block is */
void store_alloc_rebuild(const struct store_alloc *h);              /* what is not in use is free */

#endif
