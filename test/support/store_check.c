/* Written from the comments of layout.h and store_alloc.h, without the functions that change the
 * store. */
#include "support/store_check.h"

#include "arena/store_alloc.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static bool wrong(const char *what, uint64_t at)
{
    fprintf(stderr, "the store is not whole: %s at %llu\n", what, (unsigned long long)at);
    return false;
}

struct sums { uint64_t used_blocks, used_bytes, free_blocks, last; };

static bool blocks_whole(const struct store_alloc *h, struct sums *sums)
{
    uint64_t grown = store_alloc_grown(h), before = 0;
    bool free_before = false;
    if (grown > h->end)
        return wrong("more blocks than room", grown);
    for (uint64_t at = h->first, bytes; at < grown; at += bytes, before = bytes) {
        const struct store_block *b = store_alloc_block(h, at);
        bytes = store_alloc_bytes(b);
        bool is_free = !store_alloc_used(b);
        if (bytes < STOCK_UNIT || bytes % STOCK_UNIT || bytes > grown - at)
            return wrong("a block's length", at);
        if (load_acquire64(&b->before) != before)
            return wrong("the length of the block before", at);
        if (is_free && free_before)
            return wrong("two free neighbours", at);
        free_before = is_free;
        sums->last = at;
        sums->free_blocks += is_free;
        sums->used_blocks += !is_free;
        sums->used_bytes += is_free ? 0 : bytes;
    }
    return true;
}

static bool lists_whole(const struct store_alloc *h, uint64_t free_blocks)
{
    uint64_t n = 0;
    for (uint32_t list = 0; list < STORE_CLASSES; list++) {
        uint64_t prev = 0;
        if ((h->store->classes[list / 64] >> list % 64 & 1) != (h->store->free[list] != 0))
            return wrong("the bit of a list", list);
        for (uint64_t at = h->store->free[list]; at; n++) {
            const struct store_free *f =
                (const struct store_free *)(const void *)store_alloc_block(h, at);
            uint64_t bytes = store_alloc_bytes(&f->block), power = UINT64_C(1) << (list / 8 + 5);
            if (store_alloc_used(&f->block) || load_acquire64(&f->prev) != prev || n > free_blocks)
                return wrong("a link of a list", at);
            if (bytes < power + power / 8 * (list % 8)
                || bytes >= power + power / 8 * (list % 8 + 1))
                return wrong("a free block in another size's list", at);
            prev = at;
            at = load_acquire64(&f->next);
        }
    }
    return n == free_blocks || wrong("a free block in no list", n);
}

static bool entry_whole(const struct store_alloc *h, const struct store_entry *e, uint64_t bucket,
                        uint64_t buckets)
{
    const char *key = e->bytes + e->value_bytes;
    if (!store_alloc_used(&e->block)
        || sizeof *e + e->value_bytes + e->key_bytes > store_alloc_bytes(&e->block))
        return wrong("an entry's block", (uint64_t)((const char *)e - (const char *)h->store));
    if (!e->key_bytes || e->key_bytes > STORE_KEY_MOST || e->value_bytes > STORE_VALUE_MOST
        || (e->number && e->value_bytes != 8))
        return wrong("an entry's lengths", (uint64_t)((const char *)e - (const char *)h->store));
    if (e->hash != text_hash(key, e->key_bytes, 0) || (e->hash & (buckets - 1)) != bucket)
        return wrong("an entry's hash", bucket);
    for (uint64_t at = load_acquire64(&e->next); at;) {
        const struct store_entry *other =
            (const struct store_entry *)(const void *)store_alloc_block(h, at);
        if (other->hash == e->hash && other->key_bytes == e->key_bytes
            && !memcmp(other->bytes + other->value_bytes, key, e->key_bytes))
            return wrong("a key that is there twice", at);
        at = load_acquire64(&other->next);
    }
    return true;
}

bool store_whole(const struct arena *arena)
{
    struct store *s = arena->store;
    uint64_t version, n = 0, buckets = store_buckets(arena->header->store_bytes);
    struct store_alloc h = store_alloc_of(s, arena->header->store_bytes);
    const shared64 *heads = (const shared64 *)(const void *)((const char *)s + 4096);
    struct store_key none = store_key("\1", 1);
    struct sums sums = { 0 };
    size_t bytes = 0;
    int r = store_get(arena, &none, NULL, &bytes, &version, UINT64_C(30000000000));
    if (r != -ENOENT || load_acquire32(&s->dirty))
        return wrong("a look at it", (uint64_t)-r);
    if (!blocks_whole(&h, &sums) || !lists_whole(&h, sums.free_blocks))
        return false;
    if (sums.used_bytes != s->used || sums.last != s->last)
        return wrong("the books", sums.used_bytes);
    for (uint64_t i = 0; i < buckets && load_acquire32(&s->ready); i++)
        for (uint64_t at = load_acquire64(&heads[i]); at;) {
            const struct store_entry *e =
                (const struct store_entry *)(const void *)store_alloc_block(&h, at);
            if (at < h.first || at >= store_alloc_grown(&h) || !entry_whole(&h, e, i, buckets))
                return wrong("an entry", at);
            if (++n > sums.used_blocks)
                return wrong("a chain without an end", i);
            at = load_acquire64(&e->next);
        }
    return (n == s->keys && n == sums.used_blocks) || wrong("the number of entries", n);
}
