/* Each arrival carries a digest of all results so far that must be equal on all ranks. So a
 * difference shows in the next operation, of any kind, and in each one after it. All ranks compare
 * the same words after the gate, so all get the same error without a verdict. Cost: a pass over
 * each result; it is a debugging aid. */
#include "engine/verify.h"

#include "base/digest.h"

#include <errno.h>

static uint64_t verify_said(const struct coll *c, uint32_t p)
{
    /* relaxed: after E1 */
    return load_relaxed64(&watch_arrival(&c->comm->watch, p, c->op.claim.seq)->more[OUTCOME_WORD]);
}

static int verify_differ(struct coll *c)
{
    struct watch *w = &c->comm->watch;
    char room[REPORT_TEXT];
    struct text t = TEXT_IN(room);
    text_clear(&t);
    text_add(&t, "TUTTI_VERIFY: the ranks had different results before ");
    fingerprint_add(&t, c->op.claim.descriptor, c->count);
    text_add(&t, " #%llu on %s at %s, since they last agreed\n",
             (unsigned long long)(c->op.claim.seq - w->arena->header->first_seq), w->name,
             arena_site_text(w->arena, c->op.site));
    for (uint32_t p = 0; p < w->size; p++)
        text_add(&t, "  rank %-4u %016llx\n", p, (unsigned long long)verify_said(c, p));
    text_add(&t,
             "  the digests are of all results so far that must be alike; look at the operations "
             "before this one, newest first\n");
    comm_show(c->comm, &t);
    fetch_or32(&w->attention, ATTENTION_BROKEN);
    return -EPROTO;
}

static void verify_add(struct watch *w, const void *at, size_t bytes)
{
    w->outcome = digest(at, bytes, w->outcome);
}

int verify_end(struct coll *c)
{
    struct watch *w = &c->comm->watch;
    for (uint32_t p = 1; p < w->size; p++)
        if (verify_said(c, p) != verify_said(c, 0))
            return verify_differ(c);
    /* device memory cannot be read here: no rank counts this result */
    if (coll_any_device(c))
        return 0;
    switch (fingerprint_kind(c->op.claim.descriptor)) {
    case KIND_BROADCAST:
    case KIND_ALL_REDUCE: verify_add(w, c->recv, c->count * c->width); break;
    case KIND_ALL_GATHER: verify_add(w, c->recv, c->count * c->width * w->size); break;
    case KIND_ALL_GATHER_V:
    case KIND_ALL_REDUCE_MANY:
        for (int i = 0; i < c->lists.n; i++)
            verify_add(w, c->lists.recv[i], c->lists.recv_counts[i] * c->width);
        break;
    default: break;
    }
    return 0;
}
