/* Job: find a comm's key in the arena's table, and this rank's count of its calls.
 * Owns: the table's entries up to `ready`, under join.lock; the private counts.
 * Never: decides which rank runs a key.
 *
 * A key's state is one word: version:49 | runner:14 | running:1. Each change raises the version, so
 * the low half, which sleepers watch, changes. The number of rounds is a word of its own: it may
 * exceed 2^32. */
#ifndef TUTTI_ORDER_KEYS_H
#define TUTTI_ORDER_KEYS_H

#include "group/comm.h"

/* this rank and one key of one comm; stays where it is until the comm is freed here */
struct key_call {
    struct key_call *next;
    uint64_t birth, hash;
    struct key *key;
    uint64_t calls;                    /* rounds asked for */
    bool running;                      /* this rank runs it now */
};

enum { KEYS_BUCKETS = 256 };
struct keys { struct key_call *bucket[KEYS_BUCKETS]; };

/* This rank's counts of a key; add: a new key is added. NULL: *error = -ENOMEM (the table is full),
 * -EMSGSIZE, -ETIMEDOUT (the lock). */
struct key_call *keys_find(struct tutti_comm *comm, enum kind kind, const char *name, bool add,
                           int *error);

static inline uint64_t key_state_changed(uint64_t s) { return s + (UINT64_C(1) << 15); }

#endif
