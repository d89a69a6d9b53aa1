/* Same: do all ranks hold the same bytes? Two digests of them, 128 bits, travel in the arrival
 * line. Two different buffers of one length have equal digests once in 2^128, by chance. A digest
 * does not protect against someone who constructs two such buffers. */
#include "coll/algorithms.h"

#include "base/digest.h"

int same_before(struct coll *c)
{
    struct arrival *mine = &c->comm->watch.mine->arrival[c->op.claim.seq & 1];
    /* relaxed: E1 publishes them */
    store_relaxed64(&mine->payload[0], digest(c->send, c->count, 1));
    store_relaxed64(&mine->payload[1], digest(c->send, c->count, 2));       /* relaxed: as above */
    if (fingerprint_hashed(c->op.claim.descriptor))
        store_relaxed64(&mine->payload[COUNT_WORD], c->op.claim.count);     /* relaxed: as above */
    return 0;
}

int same_after(struct coll *c)
{
    const struct watch *w = &c->comm->watch;
    const struct arrival *first = watch_arrival(w, 0, c->op.claim.seq);
    c->answer = 1;
    for (uint32_t p = 1; p < w->size; p++)
        for (int i = 0; i < 2; i++)
            /* relaxed: after E1 */
            if (load_relaxed64(&watch_arrival(w, p, c->op.claim.seq)->payload[i])
                != load_relaxed64(&first->payload[i]))
                c->answer = 0;
    return 0;
}
