/* Reduce of small data: as all_reduce line and flat, but only the root folds. All wait for all, so that all or none holds. */
#include "coll/flat.h"
#include "coll/line.h"

static bool reduce_at_root(const struct coll *c)
{
    return (uint32_t)c->root == c->comm->watch.me;
}

static int reduce_line_after(struct coll *c)
{
    return reduce_at_root(c) ? line_fold(c) : 0;
}

static int reduce_flat_before(struct coll *c)
{
    return reduce_at_root(c) ? flat_put_nothing(c) : flat_put(c);
}

static int reduce_flat_after(struct coll *c)
{
    return reduce_at_root(c) ? flat_fold(c) : 0;
}

const struct algorithm reduce_line = {
    "line", KIND_REDUCE, LINE_BYTES, coll_one_phase, line_put, reduce_line_after, .help = "payload in the arrival line, the root folds: up to 88 bytes"
};
const struct algorithm reduce_flat = {
    "flat", KIND_REDUCE, FLAT_BYTES, coll_one_phase, reduce_flat_before, reduce_flat_after, .help = "a slot a rank, the root folds all: 1 wait, up to 64 KiB"
};
