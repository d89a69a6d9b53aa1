/* Job: single copy (CMA, cross-memory attach): a large operation reads a peer's private memory by
 *      process_vm_readv, without staging.
 * Owns: tutti_comm.coll.cma: whether its ranks can, and the window that a fold reads into; of this
 *       rank its words mapped and given in such an operation.
 * Never: what is read when (pipeline_reduce.c, pipeline_move.c).
 *
 * Whether all ranks of a comm may read each other (process_vm_readv: one user, Yama, a container's
 * filter, one pid namespace) they find out in the first operation of an algorithm that direct. Each
 * says where its identity lies in its memory, which the arena tells, too; after the gate it reads
 * everybody's, and says by E71 whether it could. That holds until a rank's user, groups,
 * capabilities or dumpability change, which it says in its arrival: then all find out anew. That
 * they may not holds for the comm's life.
 *
 * What lies in private memory goes when its owner goes. So in an operation of such an algorithm
 * everybody says when it has taken all that it takes (E22 given), that is C(k), and nobody returns
 * before: a death on the way fails the operation for all, and a buffer is its caller's again when
 * nobody reads it any more. Where ranks may not read each other, it goes through the arena as ever,
 * to the same C(k). */
#ifndef TUTTI_COLL_CMA_H
#define TUTTI_COLL_CMA_H

#include "coll/coll.h"

#include "base/tiny.h"

/* Before the arrival, after the staging is published: sets c->cma.may, publishes what peers need to
 * find out. 0 or -ENOMEM (no window). */
int cma_open(struct coll *c);
/* Where peers can read a private buffer of ours; nowhere, where they cannot. */
struct place cma_place(const struct coll *c, const void *at, size_t bytes);
/* After the gate, again and again until DONE: then c->cma.may is CMA_NO or CMA_YES, on all
 * ranks alike. */
int cma_finish(struct coll *c);

/* `at`: an address with CMA_BIT, of p's. Timed. DONE; WAITING: p's memory is gone, and a verdict
 * will say why; -errno, explained. */
int cma_read(struct coll *c, uint32_t p, void *to, uint64_t at, size_t bytes);

/* What a fold reads before it folds it: a stretch for each rank, all of them together small enough
 * for the cache. */
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

/* Everybody's: an operation whose C(k) is `given` ends here. This rank has taken all it takes.
 * DONE, or WAITING for others. */
int cma_given(struct coll *c);

#endif
