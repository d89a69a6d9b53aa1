/* Job: keys and their values, one table for the whole job.
 * Owns: the store's page, chains and entries, under its lock; a group's version.
 * Never: waits for a key (api/store), knows a comm.
 *
 * An entry is written whole before a chain leads to it, and stays as it is while one does: a new
 * value is a new entry, which takes the old one's place in the chain by one store. Only a number,
 * made by add, is changed where it lies, by one store of its word. Whoever is killed, at any
 * instruction, leaves the old value or the new one. What he leaves undone in the books is made anew
 * from blocks and chains by the next one who gets the lock (heap.h).
 *
 * E30 entry: a new entry is written, or its key taken out, then the word of the chain that says so
 *    (release); who walks the chain loads that word (acquire), then the entry.
 * E31 version: a key is in its chain, then its group's version is raised (release); who has found
 *    the key missing, and finds the version raised (acquire), looks again. Read under the lock with
 *    the look, so none is missed. The wake is E2, the sleep E3.
 * E32 books: dirty is set before the first store of a change, and cleared after its last (release);
 *    who gets the lock from the dead loads it (acquire): clear, and all is whole. */
#ifndef TUTTI_ARENA_STORE_H
#define TUTTI_ARENA_STORE_H

#include "arena/arena.h"

struct store_key { const char *text; size_t bytes; uint64_t hash; };

struct store_key store_key(const char *text, size_t bytes);

/* All: keys of 1 to STORE_KEY_MOST bytes, values of up to STORE_VALUE_MOST; the caller has looked.
   patience_ns is for the lock, which is held by others for a copy at most. Errors of all:
   -ETIMEDOUT (the lock), -EIO (somebody wrote over the store); of those that bring something in
   besides: -ENOSPC (full), -ENOMEM (no pages). On error nothing has changed. */
int store_set(const struct arena *arena, const struct store_key *key, const void *value,
              size_t bytes, uint64_t patience_ns);
/* 0 and the value; -EMSGSIZE and its length; -ENOENT and the version from which to sleep. */
int store_get(const struct arena *arena, const struct store_key *key, void *value, size_t *bytes,
              uint64_t *version, uint64_t patience_ns);
/* -EINVAL: there is a value that was not made by add. */
int store_add(const struct arena *arena, const struct store_key *key, int64_t delta, int64_t *now,
              uint64_t patience_ns);
struct store_value { const void *at; size_t bytes; };
/* 1: it was `expected` (0 bytes: it was not there) and is `desired`; 0: it was something else. */
int store_compare_set(const struct arena *arena, const struct store_key *key,
                      struct store_value expected, struct store_value desired,
                      uint64_t patience_ns);
/* -ENOENT */
int store_delete(const struct arena *arena, const struct store_key *key, uint64_t patience_ns);

struct store_group *store_group(const struct arena *arena, const struct store_key *key);
/* for people; 0 where the lock is not to be had soon */
void store_figures(const struct arena *arena, uint64_t *keys, uint64_t *used);

#endif
