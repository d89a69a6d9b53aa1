/* The fold reads the lines in place: after the gate (E1) they stay as they are until this rank arrives at the next operation, because
 * their owners store the one after that only then. */
#include "coll/line.h"

#include "coll/parts.h"

int line_put(struct coll *c)
{
    line_store(&c->comm->watch, c->op.claim.seq, c->send, c->bytes);
    if (c->scaled)
        coll_publish_factor(c);
    return 0;
}

int line_put_parts(struct coll *c)
{
    return parts_gives(c, c->comm->watch.me) ? line_put(c) : 0;
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
    line_sources(w, c->op.claim.seq, c->send, from);
    coll_fold(c, c->recv, from, w->size, c->count);
    return 0;
}

static struct spot line_at(const struct coll *c, uint32_t p, size_t first, size_t n)
{
    (void)first;
    (void)n;
    return (struct spot){ (const char *)watch_arrival(&c->comm->watch, p, c->op.claim.seq)->payload + parts_offset(c, p, c->comm->watch.me), 0 };
}

int line_take(struct coll *c) { return parts_take(c, line_at, 0, SIZE_MAX, NULL); }
