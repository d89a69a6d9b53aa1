/* Broadcast of small data: the root's arrival carries it (line) or says where it lies (flat); the others copy once all have arrived. */
#include "coll/flat.h"
#include "coll/line.h"

#include <errno.h>
#include <string.h>

static bool broadcast_at_root(const struct coll *c)
{
    return (uint32_t)c->root == c->comm->watch.me;
}

static int broadcast_line_before(struct coll *c)
{
    return broadcast_at_root(c) ? line_put(c) : 0;
}

static int broadcast_line_after(struct coll *c)
{
    uint64_t words[PAYLOAD_WORDS];
    if (broadcast_at_root(c) || !c->bytes)
        return 0;
    line_get(c, (uint32_t)c->root, words);
    memcpy(c->recv, words, c->bytes);
    return 0;
}

static int broadcast_flat_before(struct coll *c)
{
    return broadcast_at_root(c) ? flat_put(c) : flat_put_nothing(c);
}

static int broadcast_flat_after(struct coll *c)
{
    if (broadcast_at_root(c) || !c->bytes)
        return 0;
    const char *from = coll_peer(c, (uint32_t)c->root, c->bytes);
    if (!from)
        return -EPROTO;
    coll_copy(c, c->recv, from, c->bytes);
    return 0;
}

const struct algorithm broadcast_line = {
    "line", KIND_BROADCAST, LINE_BYTES, coll_one_phase, broadcast_line_before, broadcast_line_after, .help = "payload in the root's arrival line: up to 88 bytes"
};
const struct algorithm broadcast_flat = {
    "flat", KIND_BROADCAST, FLAT_BYTES, coll_one_phase, broadcast_flat_before, broadcast_flat_after, .help = "through the root's slot: 1 wait, 2 copies, up to 64 KiB"
};
