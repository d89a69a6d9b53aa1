/* The slot of parity k may be overwritten for k + 2: its owner is then past k + 1, which everybody has reached only after returning
 * from k. Own data is folded from the caller's buffer, not from the slot. */
#include "coll/flat.h"

#include <errno.h>

int flat_put_nothing(struct coll *c)
{
    coll_publish(c, NULL);
    return 0;
}

int flat_put(struct coll *c)
{
    int r = comm_stage_flat(c->comm, 2 * FLAT_BYTES);
    if (r < 0)
        return r;
    char *slot = c->comm->stage.flat + (c->op.claim.seq & 1) * FLAT_BYTES;
    coll_copy(c, slot, c->send, c->bytes);
    coll_publish(c, slot);
    return 0;
}

int flat_fold(struct coll *c)
{
    const struct watch *w = &c->comm->watch;
    const void *from[RANKS_MAX];
    for (uint32_t p = 0; p < w->size; p++) {
        from[p] = p == w->me ? c->send : coll_peer(c, p, c->bytes);
        if (!from[p] && c->bytes)
            return -EPROTO;
    }
    coll_fold(c, c->recv, from, c->count);
    return 0;
}
