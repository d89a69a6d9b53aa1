/* Job: take what is for this rank in a collective that moves blocks, from where it lies to its
 *      place.
 * Owns: coll.kept.
 * Never: says who gives what to whom (parts.h) or how it travels (inline, eager, pipelined). */
#ifndef TUTTI_COLL_TAKE_H
#define TUTTI_COLL_TAKE_H

#include "coll/coll.h"

/* Copies this rank's block for itself, of a kind that does not fold; take_all then skips it. */
void take_own(struct coll *c);

/* Where elements of p's lie. at: in this process's reach. at NULL: `far`, in p's private memory
 * (coll/cma.h). Both empty: outside the arena, DAMAGED. */
struct spot { const char *at; uint64_t far; };

/* Takes elements [first, first + n) of every block for this rank; n is cut to each block's end.
   `at` says where those elements of p's block lie. Includes the block that this rank keeps for
   itself.
   scratch: if the CPU cannot reach this rank's buffers, the fold writes here first, and `at` also
   says where its own block is. DONE, WAITING (cma_read: call again) or -errno. */
typedef struct spot take_at_fn(const struct coll *c, uint32_t p, size_t first, size_t n);
int take_all(struct coll *c, take_at_fn *at, size_t first, size_t n, char *scratch);

/* True: the block that this rank keeps goes past the caches, and from the gate on beside
   what it gives (base/copy.h). Not a scatter's, whose root gains nothing: far 1.04. */
bool take_may_beside(const struct coll *c);
/* Elements [first, first + n) of what it gives its neighbour in round pipeline.asked, to that one's
   `slot`. Where it gains, of the block that it keeps, too. */
void take_beside(struct coll *c, char *slot, const char *given, size_t first, size_t n);
/* True: so it was in round pipeline.taking. */
bool take_was_beside(const struct coll *c);
/* So many rounds from pipeline.taking on are taken; more than one only if none went so. */
void take_past(struct coll *c, uint64_t rounds);

#endif
