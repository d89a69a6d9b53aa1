/* All_gather: each rank gives one block to all. The counts of the _v form are the same list on all ranks, by fingerprint. */
#include "coll/flat.h"
#include "coll/line.h"
#include "coll/ring.h"

const struct algorithm all_gather_line = {
    "line", KIND_ALL_GATHER, LINE_BYTES, coll_one_phase, line_put_parts, line_take, .help = "a block in the arrival line, up to 88 bytes: the price of a barrier"
};
const struct algorithm all_gather_flat = {
    "flat", KIND_ALL_GATHER, FLAT_BYTES, coll_one_phase, flat_put_parts, flat_take, .help = "packed in the giver's slot: 1 wait, 2 copies, up to 64 KiB a rank"
};
const struct algorithm all_gather_ring = {
    "ring", KIND_ALL_GATHER, SIZE_MAX, ring_move_advance, NULL, NULL, .help = "rings of chunks, or straight from buffers in the arena: written once, read once by each who takes; any size"
};
const struct algorithm all_gather_pull = {
    "pull", KIND_ALL_GATHER, SIZE_MAX, ring_move_advance, NULL, NULL, .help = FAR_HELP, .pulls = true
};
const struct algorithm all_gather_v_flat = {
    "flat", KIND_ALL_GATHER_V, FLAT_BYTES, coll_one_phase, flat_put_lists, flat_take_lists, .help = "packed in the giver's slot: 1 wait, 2 copies, up to 64 KiB a rank"
};
const struct algorithm all_gather_v_ring = {
    "ring", KIND_ALL_GATHER_V, SIZE_MAX, ring_move_advance, NULL, NULL, .help = "rings of chunks, or straight from buffers in the arena: written once, read once by each who takes; any size"
};
const struct algorithm all_gather_v_pull = {
    "pull", KIND_ALL_GATHER_V, SIZE_MAX, ring_move_advance, NULL, NULL, .help = FAR_HELP, .pulls = true
};
