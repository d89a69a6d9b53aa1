/* Job: keys and their values, one table for the whole job.
 * Owns: the store's page, chains and entries, under its lock; a group's version.
 * Never: waits for a key (api/store), knows a comm.
 *
 * An entry is complete before a chain leads to it, and does not change while one does. A new value
 * is a new entry; one store puts it in the old one's place in the chain. Only a number, made by
 * add, changes in place, by one store. So a rank killed at any instruction leaves the old value or
 * the new one. The next holder of the lock rebuilds the books from blocks and chains
 * (store_alloc.h).
 *
 * E30 entry: a writer writes a new entry, or takes one out, then stores the word of the chain
 *    (release); a reader loads that word (acquire), then the entry.
 * E31 version: a writer puts a key into its chain, then raises the group's version (release). A
 *    rank that misses a key reads the version under the same lock; if it is raised later (acquire),
 *    it looks again. The wake is E2, the sleep E3.
 * E32 books: dirty is set before the first store of a change, and cleared after its last (release).
 *    The next holder after a death loads it (acquire): 0 means that the books are whole. */
#ifndef TUTTI_ARENA_STORE_H
#define TUTTI_ARENA_STORE_H

#include "arena/arena.h"

struct store_key { const char *text; size_t bytes; uint64_t hash; };

struct store_key store_key(const char *text, size_t bytes);

/* All: keys of 1 to STORE_KEY_MOST bytes, values of up to STORE_VALUE_MOST; the caller has checked
   that. patience_ns: for the lock, which others hold for a copy at most. Errors: -ETIMEDOUT (the
   lock), -EIO (the store was written over); of set, add and compare_set also -ENOSPC (full),
   -ENOMEM (no pages). On error nothing has changed. */
int store_set(const struct arena *arena, const struct store_key *key, const void *value,
              size_t bytes, uint64_t patience_ns);
/* 0: the value. -EMSGSIZE: its length. -ENOENT: *version, to sleep on. */
int store_get(const struct arena *arena, const struct store_key *key, void *value, size_t *bytes,
              uint64_t *version, uint64_t patience_ns);
/* -EINVAL: the value was not made by add. */
int store_add(const struct arena *arena, const struct store_key *key, int64_t delta, int64_t *now,
              uint64_t patience_ns);
struct store_value { const void *at; size_t bytes; };
/* 1: the value was `expected` (0 bytes: no key) and is `desired` now. 0: it was different. */
int store_compare_set(const struct arena *arena, const struct store_key *key,
                      struct store_value expected, struct store_value desired,
                      uint64_t patience_ns);
/* -ENOENT */
int store_delete(const struct arena *arena, const struct store_key *key, uint64_t patience_ns);

struct store_group *store_group(const struct arena *arena, const struct store_key *key);
/* for reports; 0 if the lock is not free soon */
void store_figures(const struct arena *arena, uint64_t *keys, uint64_t *used);

#endif
