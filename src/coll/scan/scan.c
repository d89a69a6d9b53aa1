/* Scan and exscan: rank r folds the blocks of ranks 0 … r, or … r - 1, in that order. Each folds for itself: N (N + 1) / 2 reads of a block in
 * all; passing partial results on would read less and round halves more than once. */
#include "coll/flat.h"
#include "coll/line.h"
#include "coll/ring.h"

const struct algorithm scan_line = {
    "line", KIND_SCAN, LINE_BYTES, coll_one_phase, line_put_parts, line_take_folded, .help = "payload in the arrival line: up to 88 bytes"
};
const struct algorithm scan_flat = {
    "flat", KIND_SCAN, FLAT_BYTES, coll_one_phase, flat_put_parts, flat_take_folded, .help = "a slot a rank, each folds those of the lower ranks: 1 wait, up to 64 KiB"
};
const struct algorithm scan_ring = {
    "ring", KIND_SCAN, SIZE_MAX, ring_move_advance, NULL, NULL, .help = "rings of chunks, each folds those of the lower ranks; any size"
};
const struct algorithm scan_pull = {
    "pull", KIND_SCAN, SIZE_MAX, ring_move_advance, NULL, NULL, .help = FAR_HELP, .pulls = true
};
const struct algorithm exscan_line = {
    "line", KIND_EXSCAN, LINE_BYTES, coll_one_phase, line_put_parts, line_take_folded, .help = "payload in the arrival line: up to 88 bytes"
};
const struct algorithm exscan_flat = {
    "flat", KIND_EXSCAN, FLAT_BYTES, coll_one_phase, flat_put_parts, flat_take_folded, .help = "a slot a rank, each folds those of the lower ranks: 1 wait, up to 64 KiB"
};
const struct algorithm exscan_ring = {
    "ring", KIND_EXSCAN, SIZE_MAX, ring_move_advance, NULL, NULL, .help = "rings of chunks, each folds those of the lower ranks; any size"
};
const struct algorithm exscan_pull = {
    "pull", KIND_EXSCAN, SIZE_MAX, ring_move_advance, NULL, NULL, .help = FAR_HELP, .pulls = true
};
