/* Job: give each comm a slot of the arena, and take back those that nobody uses any more.
 * Owns: slot.state … world_rank, join.births and join.reached, under arena_lock.
 * Never: waits for ranks; takes what a slot holds for news of another one.
 *
 * A maker may die at any instruction. So that nobody misses what is there:
 * E80 reached: how far slots go is raised, then one up to there is USED (release); who holds the
 *    lock loads it (acquire), then the slots before it, and no others.
 * E81 keys: a slot says that there may be keys of its comm, then one is there (release); all
 *    are forgotten, then it says that there are none (release), and then alone its birth is
 *    given up. */
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

/* Under arena_lock: takes back every slot that nobody uses any more, and the keys of its comm.
 * How many. */
int directory_sweep(const struct arena *arena);

#endif
