/* Job: read a peer's private memory by process_vm_readv in a large operation, without staging:
 *      single copy (CMA, cross-memory attach).
 * Owns: tutti_comm.coll.cma: whether its ranks can read each other, and the window that a fold
 *       reads into; this rank's words mapped and given in such an operation.
 * Never: decides what is read when (pipeline_reduce.c, pipeline_move.c).
 *
 * Conditions for process_vm_readv: one user, Yama, a container's filter, one pid namespace. The
 * ranks of a comm find out in the first operation with a direct algorithm whether all can read each
 * other. Each rank publishes the address of its identity in its memory; the arena holds the same
 * identity. After the gate each rank reads the identities of all, and says by E71 whether it could.
 * The answer "yes" holds until a rank's user, groups, capabilities or dumpability change. That rank
 * says so in its arrival: then all find out again. The answer "no" holds for the comm's life.
 *
 * Private memory is gone when its owner is gone. So in an operation of such an algorithm each rank
 * says when it has taken all that it takes (E22 given). That is C(k), and no rank returns before
 * it: a death before it fails the operation for all, and a buffer is its caller's again when no
 * rank reads it any more. If ranks may not read each other, the data goes through the arena, with
 * the same C(k). */
#ifndef TUTTI_COLL_CMA_H
#define TUTTI_COLL_CMA_H

#include "coll/coll.h"

#include "base/tiny.h"

/* Called before the arrival, after the staging is published: sets c->cma.may and publishes what
 * peers need to find out. 0 or -ENOMEM (no window). */
int cma_open(struct coll *c);
/* The place where peers can read a private buffer of ours; an empty place if they cannot. */
struct place cma_place(const struct coll *c, const void *at, size_t bytes);
/* Called after the gate, until DONE: then c->cma.may is CMA_NO or CMA_YES, the same on all
 * ranks. */
int cma_finish(struct coll *c);

/* at: an address of p's, with CMA_BIT. Timed. DONE. WAITING: p's memory is gone, and a verdict will
 * say why. -errno, explained. */
int cma_read(struct coll *c, uint32_t p, void *to, uint64_t at, size_t bytes);

/* A fold first reads private memory into a window: a stretch for each rank, all of them together
 * small enough for the cache. */
enum { CMA_WINDOW = TINY(262144, 512), CMA_STRETCH_LEAST = TINY(8192, 64) };
static inline size_t cma_stretch_bytes(const struct coll *c)
{
    size_t bytes = (size_t)CMA_WINDOW / c->comm->watch.size / 64 * 64;
    return bytes < CMA_STRETCH_LEAST ? CMA_STRETCH_LEAST : bytes;
}

static inline char *cma_stretch(const struct coll *c, uint32_t p)
{
    return c->comm->coll.cma.window + p * cma_stretch_bytes(c);
}

/* Called by all ranks: the end of an operation whose C(k) is `given`. This rank has taken all it
 * takes. DONE, or WAITING for others. */
int cma_given(struct coll *c);

#endif
