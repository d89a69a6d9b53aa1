/* Job: what a rank takes in a collective that moves blocks, out of wherever it lies to
 *      where it belongs.
 * Owns: coll.kept.
 * Never: who gives what to whom (parts.h), how it travels (inline, eager, pipelined). */
#ifndef TUTTI_COLL_TAKE_H
#define TUTTI_COLL_TAKE_H

#include "coll/coll.h"

/* Copies this rank's block for itself, of a kind that does not fold; take_all then does not. */
void take_own(struct coll *c);

/* Where elements of p's lie: in this process's reach, or, at NULL, in p's private memory
 * (coll/cma.h); neither: nowhere, -EPROTO. */
struct spot { const char *at; uint64_t far; };

/* Takes elements [first, first + n) of everything that is meant for this rank, n cut to each
   block's end. `at` says where those of p's block lie. Includes what this rank keeps for itself.
   scratch: where the CPU cannot reach this rank's buffers, the fold comes out here first, and its
   own block is where `at` says, too. DONE, WAITING (cma_read: it is asked again) or -errno. */
typedef struct spot take_at_fn(const struct coll *c, uint32_t p, size_t first, size_t n);
int take_all(struct coll *c, take_at_fn *at, size_t first, size_t n, char *scratch);

#endif
