/* Chains of entries by hash, one lock. Readers take it, too: a look takes a hundred nanoseconds,
 * and a replaced entry can be freed at once. The largest value is copied in some 100 us.
 * Cost: two locked instructions for the lock, two for `dirty` and the version, a chain of a few
 *       entries (there is a chain for every 2 to 4 KiB of store), and the copy. */
#include "arena/store.h"

#include "arena/store_alloc.h"
#include "arena/robust.h"
#include "os/futex.h"
#include "os/memory.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

enum { FIGURES_PATIENCE_NS = 100000000 };

struct hash_table {
    struct store *store;
    struct store_alloc heap;
    shared64 *heads;
    uint64_t buckets;
};

static struct hash_table table_of(const struct arena *arena)
{
    uint64_t bytes = arena->header->store_bytes;
    shared64 *heads = (shared64 *)(void *)((char *)arena->store + 4096);
    return (struct hash_table){ arena->store, store_alloc_of(arena->store, bytes), heads,
                                store_buckets(bytes) };
}

static struct store_entry *entry_at(const struct hash_table *t, uint64_t at)
{
    return (struct store_entry *)(void *)store_alloc_block(&t->heap, at);
}

static shared64 *entry_number(struct store_entry *e) { return (shared64 *)(void *)e->bytes; }

struct store_key store_key(const char *text, size_t bytes)
{
    return (struct store_key){ text, bytes, text_hash(text, bytes, 0) };
}

struct store_group *store_group(const struct arena *arena, const struct store_key *key)
{
    return &arena->store->group[(key->hash >> 32) % STORE_GROUPS];
}

/* ---- the lock, and what a dead holder leaves ---- */

static void group_wake(struct store_group *group)
{
    /* relaxed: E2, ordered by the fence of group_raise */
    if (load_relaxed32(&group->sleepers))
        futex_wake(low_half(&group->version), INT_MAX);
}

static void group_raise(struct store_group *group)
{
    store_fence64(&group->version, load_acquire64(&group->version) + 1); /* E31 release, E2 fence */
}

static int repair_chain(const struct hash_table *t, uint64_t bucket)
{
    const shared64 *word = &t->heads[bucket];
    /* E30 acquire */
    for (uint64_t at; (at = load_acquire64(word)) != 0; word = &entry_at(t, at)->next) {
        int r = store_alloc_keep(&t->heap, at);
        if (r < 0)
            return r;
        t->store->keys++;
    }
    return 0;
}

/* Keeps the blocks that chains lead to, and frees the rest. Wakes all: the dead holder may have
 * left out a wake. */
static int repair(const struct hash_table *t)
{
    struct store *s = t->store;
    int r = store_alloc_forget(&t->heap);
    s->keys = 0;
    for (uint64_t i = 0; i < t->buckets && r == 0 && load_acquire32(&s->ready); i++)
        r = repair_chain(t, i);
    if (r < 0)
        return r;
    store_alloc_rebuild(&t->heap);
    if (load_acquire32(&s->damaged))
        return -EIO;
    for (int i = 0; i < STORE_GROUPS; i++) {
        group_raise(&s->group[i]);
        group_wake(&s->group[i]);
    }
    store_release32(&s->dirty, 0);                                   /* E32 release */
    return 0;
}

static void leave(const struct hash_table *t) { robust_unlock(&t->store->lock); }

static int enter(const struct hash_table *t, uint64_t patience_ns)
{
    struct store *s = t->store;
    int r = robust_lock(&s->lock, patience_ns);
    if (r == -EOWNERDEAD) {
        if (load_acquire32(&s->dirty) && repair(t) < 0)              /* E32 acquire */
            store_release32(&s->damaged, 1);
        r = robust_mend(&s->lock);
    }
    if (r < 0)
        return r;
    if (!load_acquire32(&s->damaged))
        return 0;
    leave(t);
    return -EIO;
}

/* Called before every change. The first change of all makes the heads' pages present. */
static int change_begin(const struct hash_table *t)
{
    if (!load_acquire32(&t->store->ready)) {
        if (memory_populate((void *)t->heads, t->buckets * sizeof *t->heads) < 0)
            return -ENOMEM;
        store_release32(&t->store->ready, 1);
    }
    fetch_or32(&t->store->dirty, 1);                                 /* E32 rmw */
    return 0;
}

/* E32 release */
static void change_end(const struct hash_table *t) { store_release32(&t->store->dirty, 0); }

/* ---- the table ---- */

/* The key's entry, the word that leads to it, and the length of its value. Entry NULL: not there;
 * the word is the chain's head. */
struct found {
    shared64 *word;
    uint64_t at;
    struct store_entry *entry;
    uint32_t value_bytes;
    bool number;
};

/* Checks that the entry fits its block; reads its lengths once. */
static bool entry_sound(const struct hash_table *t, uint64_t at, uint32_t value_bytes,
                        uint16_t key_bytes)
{
    uint64_t room = store_alloc_bytes(store_alloc_block(&t->heap, at)),
             end = store_alloc_grown(&t->heap);
    return at < end && room <= end - at
        && sizeof(struct store_entry) + value_bytes + key_bytes <= room;
}

/* 0. -EIO: the chain leads out of the store, or in a circle: the store is damaged. */
static int table_find(const struct hash_table *t, const struct store_key *key, struct found *f)
{
    shared64 *head = &t->heads[key->hash & (t->buckets - 1)], *word = head;
    uint64_t most = (t->heap.end - t->heap.first) / sizeof(struct store_entry);
    *f = (struct found){ head, 0, NULL, 0, false };
    if (!load_acquire32(&t->store->ready))
        return 0;
    for (uint64_t at; (at = load_acquire64(word)) != 0;) {           /* E30 acquire */
        if (most-- == 0 || !store_alloc_sound(&t->heap, at)) {
            store_alloc_damaged(&t->heap);
            return -EIO;
        }
        struct store_entry *e = entry_at(t, at);
        uint32_t value_bytes = e->value_bytes;
        uint16_t key_bytes = e->key_bytes, number = e->number;
        if (!entry_sound(t, at, value_bytes, key_bytes)
            || (number && value_bytes != sizeof(int64_t))) {
            store_alloc_damaged(&t->heap);
            return -EIO;
        }
        if (e->hash == key->hash && key_bytes == key->bytes
            && !memcmp(e->bytes + value_bytes, key->text, key->bytes)) {
            *f = (struct found){ word, at, e, value_bytes, number };
            return 0;
        }
        word = &e->next;
    }
    return 0;
}

/* Takes the lock and finds the key. After a failure the lock is not held. */
static int enter_find(const struct hash_table *t, const struct store_key *key, struct found *f,
                      uint64_t patience_ns)
{
    int r = enter(t, patience_ns);
    if (r < 0)
        return r;
    r = table_find(t, key, f);
    if (r < 0)
        leave(t);
    return r;
}

static void copy(void *to, const void *from, size_t bytes)
{
    if (bytes)
        memcpy(to, from, bytes);
}

/* Puts a new entry in place of the found one, or in front of the chain. */
static int table_put(const struct hash_table *t, const struct found *f, const struct store_key *key,
                     struct store_value value, bool number)
{
    int error = change_begin(t);
    if (error)
        return error;
    uint64_t at = store_alloc_take(&t->heap, sizeof(struct store_entry) + value.bytes + key->bytes,
                                   &error);
    if (!at) {
        change_end(t);
        return error;
    }
    struct store_entry *e = entry_at(t, at);
    /* E30 acquire */
    store_release64(&e->next, load_acquire64(f->entry ? &f->entry->next : f->word));
    e->hash = key->hash;
    e->value_bytes = (uint32_t)value.bytes;
    e->key_bytes = (uint16_t)key->bytes;
    e->number = number;
    copy(e->bytes, value.at, value.bytes);
    copy(e->bytes + value.bytes, key->text, key->bytes);
    store_release64(f->word, at);                                    /* E30 release */
    if (f->entry)
        store_alloc_give(&t->heap, f->at);
    else
        t->store->keys++;
    return 0;
}

static void table_drop(const struct hash_table *t, const struct found *f)
{
    store_release64(f->word, load_acquire64(&f->entry->next));       /* E30 release, E30 acquire */
    store_alloc_give(&t->heap, f->at);
    t->store->keys--;
}

/* Ends a change: wakes the waiters if the key is new. */
static int put_end(const struct arena *arena, const struct hash_table *t, const struct found *f,
                   const struct store_key *key, int error)
{
    struct store_group *group = store_group(arena, key);
    bool appeared = error == 0 && !f->entry;
    if (appeared)
        group_raise(group);
    if (error == 0)
        change_end(t);
    leave(t);
    if (appeared)
        group_wake(group);
    return error;
}

/* ---- the functions ---- */

int store_set(const struct arena *arena, const struct store_key *key, const void *value,
              size_t bytes, uint64_t patience_ns)
{
    struct hash_table t = table_of(arena);
    struct found f;
    int r = enter_find(&t, key, &f, patience_ns);
    if (r < 0)
        return r;
    return put_end(arena, &t, &f, key,
                   table_put(&t, &f, key, (struct store_value){ value, bytes }, false));
}

int store_get(const struct arena *arena, const struct store_key *key, void *value, size_t *bytes,
              uint64_t *version, uint64_t patience_ns)
{
    struct hash_table t = table_of(arena);
    struct found f;
    int r = enter_find(&t, key, &f, patience_ns);
    if (r < 0)
        return r;
    if (!f.entry) {
        *version = load_acquire64(&store_group(arena, key)->version);           /* E31 acquire */
        r = -ENOENT;
    } else {
        if (f.value_bytes > *bytes)
            r = -EMSGSIZE;
        else
            copy(value, f.entry->bytes, f.value_bytes);
        *bytes = f.value_bytes;
    }
    leave(&t);
    return r;
}

int store_add(const struct arena *arena, const struct store_key *key, int64_t delta, int64_t *now,
              uint64_t patience_ns)
{
    struct hash_table t = table_of(arena);
    struct found f;
    int r = enter_find(&t, key, &f, patience_ns);
    if (r < 0)
        return r;
    if (!f.entry) {
        *now = delta;
        return put_end(arena, &t, &f, key,
                       table_put(&t, &f, key, (struct store_value){ &delta, sizeof delta }, true));
    }
    if (f.number) {
        uint64_t sum = load_acquire64(entry_number(f.entry)) + (uint64_t)delta;    /* E30 acquire */
        store_release64(entry_number(f.entry), sum);                 /* E30 release */
        *now = (int64_t)sum;
    } else
        r = -EINVAL;
    leave(&t);
    return r;
}

int store_compare_set(const struct arena *arena, const struct store_key *key,
                      struct store_value expected, struct store_value desired, uint64_t patience_ns)
{
    struct hash_table t = table_of(arena);
    struct found f;
    int r = enter_find(&t, key, &f, patience_ns);
    if (r < 0)
        return r;
    const struct store_entry *e = f.entry;
    bool is = expected.bytes
        ? e && f.value_bytes == expected.bytes && !memcmp(e->bytes, expected.at, expected.bytes)
        : !e;
    if (!is) {
        leave(&t);
        return 0;
    }
    r = put_end(arena, &t, &f, key, table_put(&t, &f, key, desired, false));
    return r < 0 ? r : 1;
}

int store_delete(const struct arena *arena, const struct store_key *key, uint64_t patience_ns)
{
    struct hash_table t = table_of(arena);
    struct found f;
    int r = enter_find(&t, key, &f, patience_ns);
    if (r < 0)
        return r;
    r = f.entry ? change_begin(&t) : -ENOENT;
    if (r == 0) {
        table_drop(&t, &f);
        change_end(&t);
    }
    leave(&t);
    return r;
}

void store_figures(const struct arena *arena, uint64_t *keys, uint64_t *used)
{
    struct hash_table t = table_of(arena);
    *keys = *used = 0;
    if (enter(&t, FIGURES_PATIENCE_NS) == 0) {
        *keys = t.store->keys;
        *used = t.store->used;
        leave(&t);
    }
}
