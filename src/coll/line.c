/* The fold reads the lines in place: after the gate (E1) they stay as they are until this rank arrives at the next operation, because
 * their owners store the one after that only then. */
#include "coll/line.h"

#include <string.h>

int line_put(struct coll *c)
{
    uint64_t words[PAYLOAD_WORDS] = { 0 };
    struct arrival *mine = &c->comm->watch.mine->arrival[c->op.claim.seq & 1];
    if (c->bytes)
        memcpy(words, c->send, c->bytes);
    for (size_t i = 0; i * 8 < c->bytes; i++)
        store_relaxed64(&mine->payload[i], words[i]);                /* relaxed: E1 publishes it */
    return 0;
}

void line_get(const struct coll *c, uint32_t p, uint64_t words[PAYLOAD_WORDS])
{
    const struct arrival *a = watch_arrival(&c->comm->watch, p, c->op.claim.seq);
    for (size_t i = 0; i * 8 < c->bytes; i++)
        words[i] = load_relaxed64(&a->payload[i]);                   /* relaxed: after E1 */
}

int line_fold(struct coll *c)
{
    const struct watch *w = &c->comm->watch;
    const void *from[RANKS_MAX];
    for (uint32_t p = 0; p < w->size; p++)
        /* Our own line may be at a peer's by now; what we put into it is still in our buffer. */
        from[p] = p == w->me ? c->send : (const void *)watch_arrival(w, p, c->op.claim.seq)->payload;
    coll_fold(c, c->recv, from, c->count);
    return 0;
}
