/* Job: find a comm's key in the arena's table, and this rank's count of its calls.
 * Owns: the table's entries up to `ready`, under join.lock; the private counts.
 * Never: the state of a key. */
#ifndef TUTTI_ORDER_KEYS_H
#define TUTTI_ORDER_KEYS_H

#include "group/comm.h"

struct key_call {                      /* this rank and one key of one comm */
    uint64_t birth, hash;
    struct key *key;
    uint64_t calls;                    /* rounds asked for */
    bool running;                      /* this rank runs it now */
};

struct keys { struct key_call *calls; size_t used, room; };

/* The call's books, the key being added if it is new. NULL: *error = -ENOMEM (the table is full), -EMSGSIZE, -ETIMEDOUT (the lock).
   The pointer is good until the next call. */
struct key_call *keys_find(struct tutti_comm *comm, enum kind kind, const char *name, bool add, int *error);

#endif
