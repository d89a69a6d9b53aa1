/* Broadcast of large data: the root copies chunk after chunk into its ring, the others copy them out behind it; or they read the root's
 * buffer where it lies in the arena. C(k) asks for everybody's arrival and for the root's last chunk: from then on it needs no root. */
#include "coll/ring.h"

const struct algorithm broadcast_ring = {
    "ring", KIND_BROADCAST, SIZE_MAX, ring_move_advance, NULL, NULL, .help = "the root's ring of chunks: written once, read once by each; any size"
};
const struct algorithm broadcast_pull = {
    "pull", KIND_BROADCAST, SIZE_MAX, ring_move_advance, NULL, NULL, .help = FAR_HELP, .pulls = true
};
