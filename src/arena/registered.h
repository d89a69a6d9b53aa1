/* Job: make memory of the caller part of the arena, at its own address (tutti_register).
 * Owns: nothing shared: the table of ranges is private to the process, one per world. Threads may
 *       look while others register.
 * Never: knows whether the memory is still in use. */
#ifndef TUTTI_ARENA_REGISTERED_H
#define TUTTI_ARENA_REGISTERED_H

#include "arena/arena.h"
#include "arena/span.h"

#include <pthread.h>

/* most ranges; bytes of a chunk, which is the extra memory a registration takes */
enum { ADOPT_MOST = 4096, ADOPT_CHUNK = 8 << 20 };

struct registered;

/* lock: guards the span's books; taken here. NULL: no memory. */
struct registered *registered_open(struct span *span, const struct arena *arena,
                                   pthread_mutex_t *lock);
/* Frees the table; call registered_all_out first. */
void registered_close(struct registered *registered);

/* Makes the whole pages of [ptr, ptr + bytes) part of the span, with their contents. 0. On failure
   the memory is as before, and why has the reason: -EINVAL: not ordinary memory, or registered
   already; -ENOSPC: too many ranges, or the span is full; -ENOMEM. */
int  registered_in(struct registered *registered, void *ptr, size_t bytes, struct text *why);
/* Makes the range private again, with the same contents. -EINVAL: no range begins at ptr. -ENOMEM:
 * the rest of it stays registered. */
int  registered_out(struct registered *registered, void *ptr, struct text *why);
/* Makes all ranges private. Pages without memory for that stay shared, and valid. */
void registered_all_out(struct registered *registered);

/* The longest part of the buffer in one range: bytes lo <= i < hi, byte lo at offset *at of the
 * arena. false: none. */
bool registered_find(struct registered *registered, const void *ptr, size_t bytes, uint64_t *at,
                     size_t *lo, size_t *hi);

#endif
