/* All_to_all: each rank gives a block to each rank. */
#include "coll/flat.h"
#include "coll/line.h"
#include "coll/ring.h"

const struct algorithm all_to_all_line = {
    "line", KIND_ALL_TO_ALL, LINE_BYTES, coll_one_phase, line_put_parts, line_take, .help = "all blocks in the arrival line, up to 88 bytes a rank"
};
const struct algorithm all_to_all_flat = {
    "flat", KIND_ALL_TO_ALL, FLAT_BYTES, coll_one_phase, flat_put_parts, flat_take, .help = "packed in the giver's slot: 1 wait, 2 copies, up to 64 KiB a rank"
};
const struct algorithm all_to_all_ring = {
    "ring", KIND_ALL_TO_ALL, SIZE_MAX, ring_move_advance, NULL, NULL, .help = "rings of chunks, or straight from buffers in the arena: written once, read once by each who takes; any size"
};
const struct algorithm all_to_all_pull = {
    "pull", KIND_ALL_TO_ALL, SIZE_MAX, ring_move_advance, NULL, NULL, .help = FAR_HELP, .pulls = true
};
const struct algorithm all_to_all_v_ring = {
    "ring", KIND_ALL_TO_ALL_V, SIZE_MAX, ring_move_advance, NULL, NULL, .help = "counts compared by pairs, then rings of chunks; 2 waits; any size"
};
const struct algorithm all_to_all_v_pull = {
    "pull", KIND_ALL_TO_ALL_V, SIZE_MAX, ring_move_advance, NULL, NULL, .help = "counts compared by pairs; then " FAR_HELP, .pulls = true
};
