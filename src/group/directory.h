/* Job: give each comm a slot of the arena, and take back those that nobody uses any more.
 * Owns: slot.state … world_rank and join.births, under arena_lock.
 * Never: waits for ranks. */
#ifndef TUTTI_GROUP_DIRECTORY_H
#define TUTTI_GROUP_DIRECTORY_H

#include "arena/arena.h"

struct directory_key { uint64_t parent, nth; int32_t color; const uint32_t *world_rank; uint32_t size; };

/* Finds the slot made for this key, or makes it (members' lines zero). 0, -ENOSPC, -ENOMEM, -ETIMEDOUT (the lock). */
int directory_find_or_make(const struct arena *arena, const struct directory_key *key, struct slot **slot);

/* Under arena_lock: takes back every slot that nobody uses any more, and the keys of its comm. How many. */
int directory_sweep(const struct arena *arena);

#endif
