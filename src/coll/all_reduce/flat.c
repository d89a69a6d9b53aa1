/* Flat: everybody puts its contribution into its slot, arrives, and folds all slots in rank order. One wait, one copy in, N reads:
 * the fastest for what fits the caches; above that the ring does less work per rank. */
#include "coll/flat.h"

const struct algorithm all_reduce_flat = {
    "flat", KIND_ALL_REDUCE, FLAT_BYTES, coll_one_phase, flat_put, flat_fold, .help = "a slot a rank, everybody folds all: 1 wait, N reads, up to 64 KiB"
};
