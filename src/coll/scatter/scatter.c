/* Scatter: the root gives a block to each rank. All wait for all, so that all or none holds. */
#include "coll/flat.h"
#include "coll/line.h"
#include "coll/ring.h"

const struct algorithm scatter_line = {
    "line", KIND_SCATTER, LINE_BYTES, coll_one_phase, line_put_parts, line_take, .help = "all blocks in the root's arrival line, up to 88 bytes"
};
const struct algorithm scatter_flat = {
    "flat", KIND_SCATTER, FLAT_BYTES, coll_one_phase, flat_put_parts, flat_take, .help = "packed in the giver's slot: 1 wait, 2 copies, up to 64 KiB a rank"
};
const struct algorithm scatter_ring = {
    "ring", KIND_SCATTER, SIZE_MAX, ring_move_advance, NULL, NULL, .help = "rings of chunks, or straight from buffers in the arena: written once, read once by each who takes; any size"
};
const struct algorithm scatter_pull = {
    "pull", KIND_SCATTER, SIZE_MAX, ring_move_advance, NULL, NULL, .help = FAR_HELP, .pulls = true
};
const struct algorithm scatter_v_ring = {
    "ring", KIND_SCATTER_V, SIZE_MAX, ring_move_advance, NULL, NULL, .help = "counts compared by pairs, then rings of chunks; 2 waits; any size"
};
const struct algorithm scatter_v_pull = {
    "pull", KIND_SCATTER_V, SIZE_MAX, ring_move_advance, NULL, NULL, .help = "counts compared by pairs; then " FAR_HELP, .pulls = true
};
