/* Job: give each comm a slot of the arena, and take back unused slots.
 * Owns: slot.state … world_rank, join.births and join.reached, under arena_lock.
 * Never: waits for ranks; takes a slot's content for that of another comm.
 *
 * A maker may die at any instruction. These orders keep the tables true:
 * E80 reached: a maker raises join.reached, then a slot below it becomes USED (release); the holder
 *    of the lock loads reached (acquire), then the slots below it, and no others.
 * E81 keys: slot.keys says that there may be keys of its comm, then one is there (release). All
 *    are dropped, then slot.keys says that there are none (release), and only then the slot's birth
 *    is given up. */
#ifndef TUTTI_GROUP_DIRECTORY_H
#define TUTTI_GROUP_DIRECTORY_H

#include "arena/arena.h"

struct directory_key {
    uint64_t parent, nth;
    int32_t color;
    const uint32_t *world_rank;
    uint32_t size;
};

/* Finds the slot made for this key, or makes it (members' lines zero). 0, -ENOSPC, -ENOMEM,
   -ETIMEDOUT (the lock), -EIO (the arena has been written over). */
int directory_find_or_make(const struct arena *arena, const struct directory_key *key,
                           struct slot **slot);

/* The same for the world's comm. Without the lock, where it has been made: the last rank to join
   makes it before the world is complete. */
int directory_world(const struct arena *arena, struct slot **slot);

/* Under arena_lock: takes back every unused slot, with the keys of its comm. Returns how many. */
int directory_sweep(const struct arena *arena);

#endif
