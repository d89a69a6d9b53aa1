/* All_reduce of large data: reduce-scatter and all-gather over the rings, every rank copies the result out. */
#include "coll/ring.h"

static int all_reduce_ring_advance(struct op *op)
{
    return ring_reduce_advance((struct coll *)op, true);
}

const struct algorithm all_reduce_ring = {
    "ring", KIND_ALL_REDUCE, SIZE_MAX, all_reduce_ring_advance, NULL, NULL, .help = "rings of chunks: each rank folds 1/N of it; pipelined, any size"
};
const struct algorithm all_reduce_pull = {
    "pull", KIND_ALL_REDUCE, SIZE_MAX, all_reduce_ring_advance, NULL, NULL, .help = FAR_HELP, .pulls = true
};
