/* Reduce of large data: as all_reduce over the rings, but only the root copies the result out. */
#include "coll/ring.h"

static int reduce_ring_advance(struct op *op)
{
    struct coll *c = (struct coll *)op;
    return ring_reduce_advance(c, (uint32_t)c->root == op->watch->me);
}

const struct algorithm reduce_ring = {
    "ring", KIND_REDUCE, SIZE_MAX, reduce_ring_advance, NULL, NULL, .help = "rings of chunks: each rank folds 1/N of it, the root collects; any size"
};
const struct algorithm reduce_pull = {
    "pull", KIND_REDUCE, SIZE_MAX, reduce_ring_advance, NULL, NULL, .help = FAR_HELP, .pulls = true
};
