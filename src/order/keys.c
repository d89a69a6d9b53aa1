/* A look-up takes no lock: entries never move, and a ready one does not change while its comm
 * lives. A key is added under the arena's lock, so only once. If the lock is held, an entry with an
 * owner that is not ready was left by a dead adder.
 * Cost: one hash and a few loads; the lock for a new key. */
#include "order/keys.h"

#include "group/directory.h"
#include "watch/death.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { LOCK_PATIENCE_S = 30 };

static bool key_is(const struct key *key, uint64_t birth, enum kind kind, uint64_t hash,
                   const char *name)
{
    return load_acquire64(&key->owner) == birth && load_acquire32(&key->ready)  /* E14 acquire */
        && key->kind == (uint32_t)kind && key->hash == hash && !strcmp(key->text, name);
}

static struct key *keys_lookup(const struct arena *arena, uint64_t birth, enum kind kind,
                               uint64_t hash, const char *name)
{
    for (uint32_t i = 0; i < KEYS_MAX; i++) {
        struct key *key = &arena->keys[(hash + i) % KEYS_MAX];
        if (load_acquire64(&key->owner) == 0)                                   /* E14 acquire */
            return NULL;
        if (key_is(key, birth, kind, hash, name))
            return key;
    }
    return NULL;
}

static struct key *keys_add(struct tutti_comm *comm, enum kind kind, uint64_t hash,
                            const char *name)
{
    for (uint32_t i = 0; i < KEYS_MAX; i++) {
        struct key *key = &comm->world->arena.keys[(hash + i) % KEYS_MAX];
        uint64_t owner = load_acquire64(&key->owner);                             /* E14 acquire */
        if (owner != 0 && owner != KEY_DROPPED && load_acquire32(&key->ready))    /* E14 acquire */
            continue;
        store_release32(&key->ready, 0);
        key->kind = (uint32_t)kind;
        key->hash = hash;
        strcpy(key->text, name);
        store_release64(&key->state, 0);
        store_release64(&key->rounds, 0);
        store_release32(&comm->watch.slot->keys, 1);
        store_release64(&key->owner, comm->birth);                    /* E14 release, E81 release */
        store_release32(&key->ready, 1);                              /* E14 release */
        return key;
    }
    return NULL;
}

static struct key *keys_make(struct tutti_comm *comm, enum kind kind, uint64_t hash,
                             const char *name, int *error)
{
    const struct arena *arena = &comm->world->arena;
    *error = arena_lock(arena, (uint64_t)LOCK_PATIENCE_S * 1000000000u);
    if (*error < 0)
        return NULL;
    struct key *key = keys_lookup(arena, comm->birth, kind, hash, name);
    if (!key)
        key = keys_add(comm, kind, hash, name);
    if (!key && directory_sweep(arena))         /* slots of freed comms may have had keys */
        key = keys_add(comm, kind, hash, name);
    arena_unlock(arena);
    *error = key ? 0 : -ENOMEM;
    return key;
}

static struct key *keys_get(struct tutti_comm *comm, enum kind kind, uint64_t hash,
                            const char *name, bool add, int *error)
{
    struct key *key = keys_lookup(&comm->world->arena, comm->birth, kind, hash, name);
    *error = 0;
    if (key || !add)
        return key;
    key = keys_make(comm, kind, hash, name, error);
    if (*error == -ENOMEM && death_seek(&comm->world->whole->watch))
        key = keys_make(comm, kind, hash, name, error);
    return key;
}

static struct key_call *keys_book(struct tutti_comm *comm, uint64_t hash, struct key *key)
{
    struct keys *keys = comm->world->keys;
    struct key_call **bucket = &keys->bucket[hash % KEYS_BUCKETS], *call;
    for (call = *bucket; call; call = call->next)
        if (call->key == key && call->birth == comm->birth)
            return call;
    call = malloc(sizeof *call);
    if (!call)
        return NULL;
    *call = (struct key_call){ .next = *bucket, .birth = comm->birth, .hash = hash, .key = key };
    return *bucket = call;
}

struct key_call *keys_find(struct tutti_comm *comm, enum kind kind, const char *name, bool add,
                           int *error)
{
    size_t n = strlen(name);
    *error = -EMSGSIZE;
    if (n >= KEY_TEXT)
        return NULL;
    uint64_t hash = text_hash(name, n, comm->birth * 64 + (uint64_t)kind);
    struct key *key = keys_get(comm, kind, hash, name, add, error);
    if (!key)
        return NULL;
    pthread_mutex_lock(&comm->world->lock);
    struct key_call *call = keys_book(comm, hash, key);
    pthread_mutex_unlock(&comm->world->lock);
    *error = call ? 0 : -ENOMEM;
    return call;
}
