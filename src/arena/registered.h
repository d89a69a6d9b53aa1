/* Job: memory of the caller that was made part of the arena at its own address (tutti_register).
 * Owns: nothing shared: the table of ranges is private to the process, one per world. Threads may
 *       look while others register.
 * Never: whether anybody still uses the memory. */
#ifndef TUTTI_ARENA_REGISTERED_H
#define TUTTI_ARENA_REGISTERED_H

#include "arena/arena.h"
#include "arena/span.h"

#include <pthread.h>

/* ranges; bytes copied at a time, which is the memory it takes on top */
enum { ADOPT_MOST = 4096, ADOPT_CHUNK = 8 << 20 };

struct registered;

/* lock guards the span's books; taken here where needed. NULL: no memory. */
struct registered *registered_open(struct span *span, const struct arena *arena,
                                   pthread_mutex_t *lock);
/* the table only; registered_all_out comes first */
void registered_close(struct registered *registered);

/* The whole pages of [ptr, ptr + bytes) become part of the span, with their contents. 0; else with
   the reason in why: -EINVAL not ordinary memory, or known already; -ENOSPC too many ranges, or the
   span is full; -ENOMEM. Then the memory is as before. */
int  registered_in(struct registered *registered, void *ptr, size_t bytes, struct text *why);
/* Back to private memory with the same contents. -EINVAL: no range begins at ptr; -ENOMEM: what is
 * not back yet stays registered. */
int  registered_out(struct registered *registered, void *ptr, struct text *why);
/* what cannot be brought back for lack of memory stays shared, and valid */
void registered_all_out(struct registered *registered);

/* The longest stretch of the buffer that lies in the arena by one range: its bytes lo <= i < hi,
 * byte lo at offset at. false: none. */
bool registered_find(struct registered *registered, const void *ptr, size_t bytes, uint64_t *at,
                     size_t *lo, size_t *hi);

#endif
