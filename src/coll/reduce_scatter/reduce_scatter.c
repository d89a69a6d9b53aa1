/* Reduce_scatter: rank p folds block p of everybody's buffer, in rank order. The counts of the _v form are the same list on all ranks, by
 * fingerprint, so every rank knows where its blocks begin. */
#include "coll/flat.h"
#include "coll/line.h"
#include "coll/ring.h"

const struct algorithm reduce_scatter_line = {
    "line", KIND_REDUCE_SCATTER, LINE_BYTES, coll_one_phase, line_put_parts, line_take_folded, .help = "all blocks in the arrival line, up to 88 bytes a rank: the price of a barrier"
};
const struct algorithm reduce_scatter_flat = {
    "flat", KIND_REDUCE_SCATTER, FLAT_BYTES, coll_one_phase, flat_put_parts, flat_take_folded, .help = "blocks in a slot a rank, each folds its own from N places: 1 wait, up to 64 KiB a rank"
};
const struct algorithm reduce_scatter_ring = {
    "ring", KIND_REDUCE_SCATTER, SIZE_MAX, ring_move_advance, NULL, NULL, .help = "rings of chunks, each rank folds its own block; any size"
};
const struct algorithm reduce_scatter_pull = {
    "pull", KIND_REDUCE_SCATTER, SIZE_MAX, ring_move_advance, NULL, NULL, .help = FAR_HELP, .pulls = true
};
const struct algorithm reduce_scatter_v_flat = {
    "flat", KIND_REDUCE_SCATTER_V, FLAT_BYTES, coll_one_phase, flat_put_lists, flat_take_lists, .help = "blocks in a slot a rank, each folds its own from N places: 1 wait, up to 64 KiB a rank"
};
const struct algorithm reduce_scatter_v_ring = {
    "ring", KIND_REDUCE_SCATTER_V, SIZE_MAX, ring_move_advance, NULL, NULL, .help = "rings of chunks, each rank folds its own block; any size"
};
const struct algorithm reduce_scatter_v_pull = {
    "pull", KIND_REDUCE_SCATTER_V, SIZE_MAX, ring_move_advance, NULL, NULL, .help = FAR_HELP, .pulls = true
};
