/* All_reduce of several buffers as one operation. The buffers are one vector: they lie one behind
 * the other in the slot and in the pipelines. That takes one wait, and one round trip of the
 * pipelines, for all of them. All ranks have the same list of counts, by fingerprint. */
#include "base/error.h"
#include "coll/algorithms.h"
#include "coll/eager.h"

#include <errno.h>

int many_eager_before(struct coll *c)
{
    char *slot, *to;
    int r = eager_slot(c, &slot);
    if (r < 0)
        return r;
    to = slot;
    for (int i = 0; i < c->lists.n; i++) {
        coll_copy_in(c, to, c->lists.send[i], c->lists.send_counts[i] * c->width);
        to += c->lists.send_counts[i] * c->width;
    }
    coll_publish(c, slot);
    return 0;
}

int many_eager_after(struct coll *c)
{
    const struct watch *w = &c->comm->watch;
    const char *slot[RANKS_MAX];
    for (uint32_t p = 0; p < w->size; p++) {
        slot[p] = p == w->me ? NULL : coll_peer(c, p, c->bytes);
        if (p != w->me && !slot[p] && c->bytes)
            return DAMAGED;
    }
    for (int i = 0; i < c->lists.n && c->bytes; i++) {
        const void *from[RANKS_MAX];
        for (uint32_t p = 0; p < w->size; p++)
            from[p] = p == w->me ? c->lists.send[i] : slot[p] + c->lists.first[i] * c->width;
        coll_fold(c, c->lists.recv[i], from, w->size, c->lists.send_counts[i]);
    }
    return 0;
}
