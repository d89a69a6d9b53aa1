/* A slot is found by its key, so members agree without messages: the first one makes the slot, the
 * others find it. A slot is made anew only when each of its members has freed it and said its last
 * word there, or left, or died: no rank reads or writes it then.
 * All but one look runs under one robust lock. A holder that dies leaves at worst a slot that is
 * still FREE, half filled; its `keys` is true.
 * The world's slot is the first one ever used, and no other comm's while a rank of the world has
 * not freed it. So its ranks find it without the lock, which 1,024 would take at the same time.
 * A death counts by its mark: under the lock nobody asks the system. Who gets -ENOSPC asks before
 * (comm_slot).
 * Cost: the lock, and a scan of the slots in use. */
#include "group/directory.h"

#include "os/memory.h"
#include "watch/death.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { LOCK_PATIENCE_S = 30 };

static uint64_t directory_hash(const struct directory_key *key)
{
    uint64_t h = text_hash(key->world_rank, key->size * sizeof *key->world_rank, key->parent);
    return text_hash(&key->nth, sizeof key->nth, h ^ (uint64_t)(uint32_t)key->color);
}

static bool directory_same(const struct slot *slot, const struct directory_key *key, uint64_t hash)
{
    return load_acquire32(&slot->state) == SLOT_USED && slot->key_hash == hash
        && slot->parent == key->parent && slot->nth == key->nth && slot->color == key->color
        && slot->size == key->size
        && memcmp(slot->world_rank, key->world_rank, key->size * sizeof *key->world_rank) == 0;
}

static bool directory_abandoned(const struct arena *arena, struct slot *slot)
{
    uint32_t size = arena_slot_size(arena, slot);
    if (size == 0)                                           /* damaged: it stays as it is */
        return false;
    for (uint32_t p = 0; p < size; p++) {
        if (load_acquire32(&arena_member(slot, p)->quit) & QUIT_OVER)               /* E7 acquire */
            continue;
        uint32_t rank = arena_slot_rank(arena, slot, p);
        if (rank == RANK_NOBODY || death_of(&arena->seats[rank]) == GONE_NO)
            return false;
    }
    return true;
}

/* How many slots to look at. At most header->slots, even if the arena is damaged. */
static uint32_t directory_reached(const struct arena *arena)
{
    uint32_t reached = load_acquire32(&arena->join->reached);                   /* E80 acquire */
    return reached < arena->header->slots ? reached : arena->header->slots;
}

/* Drops the keys of the comm that was in this slot. False: it had none. */
static bool directory_drop_keys(const struct arena *arena, struct slot *slot)
{
    uint64_t birth = slot->birth;
    if (!load_acquire32(&slot->keys))                                             /* E81 acquire */
        return false;
    for (uint32_t i = 0; i < KEYS_MAX; i++) {
        struct key *key = &arena->keys[i];
        if (load_acquire64(&key->owner) != birth)                                 /* E14 acquire */
            continue;
        store_release32(&key->ready, 0);
        store_release64(&key->state, 0);
        store_release64(&key->rounds, 0);
        store_release64(&key->owner, KEY_DROPPED);                                /* E14 release */
    }
    store_release32(&slot->keys, 0);                                              /* E81 release */
    return true;
}

static int directory_fill(const struct arena *arena, struct slot *slot,
                          const struct directory_key *key, uint64_t hash)
{
    size_t head = layout_slot_head(key->size);
    if (memory_populate(slot, head + key->size * sizeof(struct member)) < 0)
        return -ENOMEM;
    directory_drop_keys(arena, slot);
    memset((void *)slot, 0, head);
    /* not by the slot's size, which is none now */
    memset((char *)slot + head, 0, key->size * sizeof(struct member));
    slot->size = key->size;
    slot->birth = ++arena->join->births;
    slot->key_hash = hash;
    slot->parent = key->parent;
    slot->nth = key->nth;
    slot->color = key->color;
    memcpy(slot->world_rank, key->world_rank, key->size * sizeof *key->world_rank);
    store_release32(&slot->state, SLOT_USED);                                   /* E80 release */
    return 0;
}

int directory_sweep(const struct arena *arena)
{
    int n = 0;
    uint32_t reached = directory_reached(arena);
    for (uint32_t i = 0; i < reached; i++) {
        struct slot *slot = arena_slot(arena, i);
        bool free = load_acquire32(&slot->state) == SLOT_FREE;
        if (!free && !directory_abandoned(arena, slot))
            continue;
        store_release32(&slot->state, SLOT_FREE);
        /* also keys that a sweeper left when it died */
        bool dropped = directory_drop_keys(arena, slot);
        n += !free || dropped;
    }
    return n;
}

/* One more slot, never used before. */
static int directory_reach(const struct arena *arena, uint32_t reached, struct slot **room)
{
    struct slot *next = arena_slot(arena, reached);
    if (!next)
        return -ENOSPC;
    if (load_acquire32(&next->state) != SLOT_FREE)
        return -EIO;                                    /* join.reached was written over */
    store_release32(&arena->join->reached, reached + 1);     /* E80 release */
    *room = next;
    return 0;
}

int directory_find_or_make(const struct arena *arena, const struct directory_key *key,
                           struct slot **slot)
{
    uint64_t hash = directory_hash(key);
    struct slot *room = NULL;
    *slot = NULL;
    int r = arena_lock(arena, (uint64_t)LOCK_PATIENCE_S * 1000000000u);
    if (r < 0)
        return r;
    uint32_t reached = directory_reached(arena);
    for (uint32_t i = 0; i < reached && !*slot; i++) {
        struct slot *s = arena_slot(arena, i);
        bool free = load_acquire32(&s->state) == SLOT_FREE;
        if (!free && directory_same(s, key, hash))
            *slot = s;
        else if (!room && (free || directory_abandoned(arena, s)))
            room = s;
    }
    if (!*slot && !room)
        r = directory_reach(arena, reached, &room);
    if (!*slot && room) {
        store_release32(&room->state, SLOT_FREE);
        r = directory_fill(arena, room, key, hash);
        if (r == 0)
            *slot = room;
    }
    arena_unlock(arena);
    return r;
}

/* NULL: it has not been made. */
static struct slot *directory_first(const struct arena *arena)
{
    struct slot *slot = directory_reached(arena) ? arena_slot(arena, 0) : NULL;
    /* E80 acquire */
    bool there = slot && load_acquire32(&slot->state) == SLOT_USED && slot->parent == 0
        && slot->nth == 0 && slot->color == -1 && slot->size == arena->header->size;
    return there ? slot : NULL;
}

int directory_world(const struct arena *arena, struct slot **slot)
{
    uint32_t size = arena->header->size;
    *slot = directory_first(arena);
    if (*slot)
        return 0;
    uint32_t *all = calloc(size, sizeof *all);
    if (!all)
        return -ENOMEM;
    for (uint32_t p = 0; p < size; p++)
        all[p] = p;
    int r = directory_find_or_make(arena, &(struct directory_key){ 0, 0, -1, all, size }, slot);
    free(all);
    return r;
}
