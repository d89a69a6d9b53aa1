/* Blocks lie side by side; free neighbours are always one block. Free blocks are in lists by size:
 * eight lists for each power of two, and a bit for each list, so the smallest list whose blocks all
 * fit is found at once. Freed blocks are used before the store makes more pages present.
 * A store to a former entry is a release store, after the one that took the entry out of its chain.
 * Cost: a handful of loads and stores. */
#include "arena/store_alloc.h"

#include "os/memory.h"

#include <errno.h>
#include <string.h>

enum { LIST_BITS = 3, LEVEL_FIRST = 5, GROW_LEAST = 128 << 10, SPLIT_LEAST = 64 };

static uint32_t list_of(uint64_t bytes)
{
    uint32_t level = 63 - (uint32_t)__builtin_clzll(bytes);
    return (level - LEVEL_FIRST) << LIST_BITS
        | (uint32_t)(bytes >> (level - LIST_BITS) & ((1 << LIST_BITS) - 1));
}

/* The first list whose blocks all have that many bytes. */
static uint32_t list_above(uint64_t bytes)
{
    uint32_t level = 63 - (uint32_t)__builtin_clzll(bytes);
    return list_of(bytes + (UINT64_C(1) << (level - LIST_BITS)) - 1);
}

bool store_alloc_sound(const struct store_alloc *h, uint64_t at)
{
    uint64_t end = store_alloc_grown(h);
    if (at < h->first || at >= end || at % STOCK_UNIT)
        return false;
    uint64_t bytes = store_alloc_bytes(store_alloc_block(h, at));
    return bytes >= STOCK_UNIT && bytes % STOCK_UNIT == 0 && bytes <= end - at;
}

void store_alloc_damaged(const struct store_alloc *h) { store_release32(&h->store->damaged, 1); }

static struct store_free *free_block(const struct store_alloc *h, uint64_t at)
{
    return (struct store_free *)(void *)((char *)h->store + at);
}

static void list_add(const struct store_alloc *h, uint64_t at)
{
    struct store *s = h->store;
    struct store_free *b = free_block(h, at);
    uint64_t bytes = store_alloc_bytes(&b->block);
    uint32_t list = bytes >= STOCK_UNIT && bytes <= h->end ? list_of(bytes) : STORE_CLASSES;
    uint64_t first = list < STORE_CLASSES ? s->free[list] : 0;
    if (list >= STORE_CLASSES || (first && !store_alloc_sound(h, first))) {
        store_alloc_damaged(h);
        return;
    }
    store_release64(&b->next, first);
    store_release64(&b->prev, 0);
    if (first)
        store_release64(&free_block(h, first)->prev, at);
    s->free[list] = at;
    s->classes[list / 64] |= UINT64_C(1) << list % 64;
}

static void list_remove(const struct store_alloc *h, uint64_t at)
{
    struct store *s = h->store;
    const struct store_free *b = free_block(h, at);
    uint64_t bytes = store_alloc_bytes(&b->block), next = load_acquire64(&b->next),
             prev = load_acquire64(&b->prev);
    if (bytes < STOCK_UNIT || bytes > h->end || (next && !store_alloc_sound(h, next))
        || (prev && !store_alloc_sound(h, prev))) {
        store_alloc_damaged(h);
        return;
    }
    uint32_t list = list_of(bytes);
    if (next)
        store_release64(&free_block(h, next)->prev, prev);
    if (prev)
        store_release64(&free_block(h, prev)->next, next);
    else
        s->free[list] = next;
    if (!s->free[list])
        s->classes[list / 64] &= ~(UINT64_C(1) << list % 64);
}

static uint64_t list_first_from(const struct store *s, uint32_t list)
{
    for (uint32_t word = list / 64; word < sizeof s->classes / sizeof *s->classes; word++) {
        uint64_t bits = s->classes[word]
            & (word == list / 64 ? ~UINT64_C(0) << list % 64 : ~UINT64_C(0));
        uint32_t found = word * 64 + (uint32_t)(bits ? __builtin_ctzll(bits) : 0);
        if (bits)
            return found < STORE_CLASSES ? s->free[found] : 0;
    }
    return 0;
}

/* The list of this size may hold blocks that are a little too small: its first one is looked at,
   the others only if no other list has a block. */
static uint64_t find(const struct store_alloc *h, uint64_t bytes, bool all)
{
    uint64_t at = h->store->free[list_of(bytes)], most = (h->end - h->first) / STOCK_UNIT;
    while (at && store_alloc_sound(h, at) && store_alloc_bytes(store_alloc_block(h, at)) < bytes
           && most-- > 0)
        at = all ? load_acquire64(&free_block(h, at)->next) : 0;
    return at ? at : list_first_from(h->store, list_above(bytes));
}

static void set_before(const struct store_alloc *h, uint64_t at, uint64_t bytes)
{
    if (at < store_alloc_grown(h))
        store_release64(&store_alloc_block(h, at)->before, bytes);
    else
        h->store->last = at - bytes;
}

/* Takes the free block at `at`; the bytes that it does not need become a free block behind it. */
static uint64_t carve(const struct store_alloc *h, uint64_t at, uint64_t bytes)
{
    struct store_block *b = store_alloc_block(h, at);
    uint64_t have = store_alloc_bytes(b);
    list_remove(h, at);
    if (have - bytes < SPLIT_LEAST)
        bytes = have;
    else {
        struct store_block *rest = store_alloc_block(h, at + bytes);
        store_release64(&rest->before, bytes);
        store_release64(&rest->bytes, have - bytes);
        set_before(h, at + have, have - bytes);
    }
    store_release64(&b->bytes, bytes | STOCK_USED);                   /* E33 release */
    if (bytes < have)
        list_add(h, at + bytes);
    h->store->used += bytes;
    return at;
}

static void give(const struct store_alloc *h, uint64_t at)
{
    struct store_block *b = store_alloc_block(h, at);
    uint64_t bytes = store_alloc_bytes(b), before = load_acquire64(&b->before), next = at + bytes;
    bool follows = next < store_alloc_grown(h), leads = before && before <= at;
    if (!store_alloc_sound(h, at) || (follows && !store_alloc_sound(h, next))
        || (before && (!leads || !store_alloc_sound(h, at - before)))) {
        store_alloc_damaged(h);
        return;
    }
    if (follows && !store_alloc_used(store_alloc_block(h, next))) {
        list_remove(h, next);
        bytes += store_alloc_bytes(store_alloc_block(h, next));
    }
    if (before && !store_alloc_used(store_alloc_block(h, at - before))) {
        at -= before;
        list_remove(h, at);
        bytes += before;
    }
    if (bytes > store_alloc_grown(h) - at) {
        store_alloc_damaged(h);
        return;
    }
    store_release64(&store_alloc_block(h, at)->bytes, bytes);         /* E33 release */
    set_before(h, at + bytes, bytes);
    list_add(h, at);
}

void store_alloc_give(const struct store_alloc *h, uint64_t at)
{
    h->store->used -= store_alloc_bytes(store_alloc_block(h, at));
    give(h, at);
}

/* Makes room behind the last block for one of that many bytes, together with that last one if
 * it is free. */
static int grow(const struct store_alloc *h, uint64_t bytes)
{
    struct store *s = h->store;
    uint64_t grown = store_alloc_grown(h) - h->first, left = h->end - h->first - grown,
             at = h->first + grown;
    if (grown % STOCK_UNIT || (grown && !store_alloc_sound(h, s->last))) {
        store_alloc_damaged(h);
        return -EIO;
    }
    uint64_t last = grown ? store_alloc_bytes(store_alloc_block(h, s->last)) : 0,
             tail = last && !store_alloc_used(store_alloc_block(h, s->last)) ? last : 0;
    if (!left || bytes > tail + left)
        return -ENOSPC;
    uint64_t more = bytes > tail + GROW_LEAST ? bytes - tail : GROW_LEAST;
    more = layout_round(more > grown / 8 ? more : grown / 8, 4096);
    more = more < left ? more : left;
    int error = memory_populate((char *)s + at, more);
    if (error)
        return -ENOMEM;
    store_release64(&store_alloc_block(h, at)->before, last);
    store_release64(&store_alloc_block(h, at)->bytes, more | STOCK_USED);
    store_release64(&s->grown, grown + more);                        /* E33 release */
    s->last = at;
    give(h, at);
    return 0;
}

uint64_t store_alloc_take(const struct store_alloc *h, uint64_t bytes, int *error)
{
    bytes = layout_round(bytes, STOCK_UNIT);
    *error = 0;
    uint64_t at = find(h, bytes, false);
    if (!at) {
        *error = grow(h, bytes);
        at = *error == -EIO ? 0 : find(h, bytes, true);
    }
    if (at
        && (!store_alloc_sound(h, at) || store_alloc_used(store_alloc_block(h, at))
            || store_alloc_bytes(store_alloc_block(h, at)) < bytes))
        store_alloc_damaged(h);
    if (at && !load_acquire32(&h->store->damaged))
        at = carve(h, at, bytes);
    if (load_acquire32(&h->store->damaged)) {
        *error = -EIO;
        return 0;
    }
    return at;
}

int store_alloc_forget(const struct store_alloc *h)
{
    uint64_t grown = store_alloc_grown(h);
    if (grown > h->end)
        return -EIO;
    for (uint64_t at = h->first; at < grown;) {
        struct store_block *b = store_alloc_block(h, at);
        uint64_t bytes = store_alloc_bytes(b);
        if (bytes < STOCK_UNIT || bytes % STOCK_UNIT || bytes > grown - at)
            return -EIO;
        store_release64(&b->bytes, bytes);
        at += bytes;
    }
    return 0;
}

int store_alloc_keep(const struct store_alloc *h, uint64_t at)
{
    if (at < h->first || at >= store_alloc_grown(h) || at % STOCK_UNIT
        || store_alloc_used(store_alloc_block(h, at)))
        return -EIO;
    store_release64(&store_alloc_block(h, at)->bytes,
                    store_alloc_bytes(store_alloc_block(h, at)) | STOCK_USED);
    return 0;
}

void store_alloc_rebuild(const struct store_alloc *h)
{
    struct store *s = h->store;
    uint64_t grown = store_alloc_grown(h), before = 0;
    memset(s->classes, 0, sizeof s->classes);
    memset(s->free, 0, sizeof s->free);
    s->used = 0;
    for (uint64_t at = h->first, bytes; at < grown; at += bytes, before = bytes) {
        struct store_block *b = store_alloc_block(h, at);
        bytes = store_alloc_bytes(b);
        bool used = store_alloc_used(b);
        if (!store_alloc_sound(h, at)) {    /* written over since store_alloc_forget */
            store_alloc_damaged(h);
            return;
        }
        for (uint64_t next = at + bytes; !used && next < grown && store_alloc_sound(h, next)
             && !store_alloc_used(store_alloc_block(h, next));
             next = at + bytes)
            bytes += store_alloc_bytes(store_alloc_block(h, next));
        if (!used)
            store_release64(&b->bytes, bytes);                       /* E33 release */
        store_release64(&b->before, before);
        s->last = at;
        if (used)
            s->used += bytes;
        else
            list_add(h, at);
    }
}
