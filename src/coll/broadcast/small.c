/* Broadcast of small data: the root's arrival carries it (line) or says where it lies (flat); the others copy once all have arrived. */
#include "coll/flat.h"
#include "coll/line.h"

const struct algorithm broadcast_line = {
    "line", KIND_BROADCAST, LINE_BYTES, coll_one_phase, line_put_parts, line_take, .help = "payload in the root's arrival line: up to 88 bytes"
};
const struct algorithm broadcast_flat = {
    "flat", KIND_BROADCAST, FLAT_BYTES, coll_one_phase, flat_put_parts, flat_take, .help = "through the root's slot: 1 wait, 2 copies, up to 64 KiB"
};
