/* What a rank can do is on its card before it arrives, so all ranks choose alike after the gate. In
 * place: peers may keep its buffers open (tutti_cuda_alloc, tutti_register), or all ranks are
 * threads of one process. Else through its staging, which costs memory and is made when it is
 * first needed. A rank whose buffers can be read in place has none, until it meets a rank whose
 * buffers cannot. */
#include "gpu/direct.h"

#include "coll/parts.h"
#include "coll/select.h"
#include "gpu/streams.h"

#include <errno.h>

static bool alone_in_process(const struct coll *c)
{
    const struct watch *w = &c->comm->watch;
    for (uint32_t p = 0; p < w->size; p++)
        if (!arena_one_process(w->arena, watch_world_rank(w, p), watch_world_rank(w, w->me)))
            return false;
    return true;
}

/* True: in place, this collective overwrites what peers read (direct_move.c). */
static bool overwrites(const struct coll *c)
{
    enum kind kind = c->algorithm->kind;
    return c->send == c->recv
        && (kind == KIND_ALL_TO_ALL || kind == KIND_SCAN || kind == KIND_EXSCAN);
}

/* Memory of a context that is not the device's primary one, in which our kernels run. Documents do
 * not let one context's kernels read another's memory, though an H100's driver (580) does. Where it
 * does not, the context would die of it. Copies do no such harm. */
static bool is_of_another_context(const struct device_call *d, const struct device_buffer *b)
{
    return b->bytes && device_is(b) && b->pointer.context
        && b->pointer.context != gpu_context(d->gpu);
}

static bool can_go(struct coll *c, struct text *why)
{
    struct device_call *d = c->gpu.call;
    const char *reason = NULL;
    if (!direct_is_kind(c->algorithm->kind) || c->lists.n)
        reason = "collectives of lists go through the staging";
    else if (c->fold.user)
        reason = "an operation of the caller's own runs on the CPU";
    else if ((d->send.bytes && !device_is(&d->send)) || (d->recv.bytes && !device_is(&d->recv)))
        reason = "one of the buffers is host memory";
    else if (is_of_another_context(d, &d->send) || is_of_another_context(d, &d->recv))
        reason = "one of the buffers is memory of another context than the device's primary one";
    if (reason)
        text_add(why, "%s", reason);
    return !reason && (!d->direct->folds || direct_can_fold(c, why));
}

/* True: a peer reads this rank's send buffer; its receive buffer. */
static bool lends_send(const struct coll *c)
{
    return c->gpu.call->send.bytes
        && (c->algorithm->kind == KIND_ALL_REDUCE || c->algorithm->kind == KIND_REDUCE
            || parts_gives(c, c->comm->watch.me));
}

static bool lends_recv(const struct coll *c)
{
    return c->gpu.call->recv.bytes && c->algorithm->kind == KIND_ALL_REDUCE;
}

int direct_lend(struct coll *c, struct ipc_export *share, const struct driver_pointer *pointer,
                size_t bytes, struct lent *lent, struct text *why)
{
    int r = gpu_enter(c->gpu.call->gpu, why);
    if (r < 0)
        return r;
    r = ipc_export_lend(share, gpu_api(c->gpu.call->gpu), pointer, bytes, lent, why);
    gpu_leave(c->gpu.call->gpu);
    if (r == 0 && lent->how == LENT_DESCRIPTOR)
        r = ipc_export_hand_out(share, lent, &c->comm->watch, why);
    return r == 0 && lent->how == LENT_NOT && !alone_in_process(c) ? -ENOTSUP : r;
}

static struct card *cards_of(struct coll *c)
{
    int error;
    if (!c->comm->gpu.cards)
        c->comm->gpu.cards = comm_hold(c->comm, 2 * sizeof(struct card), &error);
    return c->comm->gpu.cards;
}

/* True: peers can read this rank's buffers where they lie, and need not open them at each
 * operation. */
static bool lends_place(struct coll *c, struct ipc_export *share, struct text *why)
{
    const struct device_call *d = c->gpu.call;
    struct direct_peer *mine = &c->gpu.call->direct->mine;
    bool alone = alone_in_process(c), send = lends_send(c), recv = lends_recv(c);
    if (select_road(c->comm->world->rules, ROAD_PLACE, c->bytes) == ROAD_PINNED)
        return false;
    if (c->comm->gpu.no_place || overwrites(c)) {
        text_add(why, "%s", c->comm->gpu.no_place
                     ? "a peer's buffer could not be opened"
                     : "in place, what peers read would be overwritten");
        return false;
    }
    if (!alone
        && ((send && !ipc_export_stays(share, &d->send.pointer, d->send.bytes))
            || (recv && !ipc_export_stays(share, &d->recv.pointer, d->recv.bytes)))) {
        text_add(why, "its memory is neither of tutti_cuda_alloc nor registered");
        return false;
    }
    const struct device_buffer *s = &d->send, *r = &d->recv;
    bool lent = (!send || direct_lend(c, share, &s->pointer, s->bytes, &mine->send, why) == 0)
        && (!recv || direct_lend(c, share, &r->pointer, r->bytes, &mine->recv, why) == 0);
    if (!lent)
        ipc_export_note(share, why->at);
    return lent;
}

static bool lends_staging(struct coll *c, struct ipc_export *share, struct text *why)
{
    struct device_call *d = c->gpu.call;
    struct device_slots *slots = &d->streams->slots;
    struct lent *lent = &d->direct->mine.staging;
    if (select_road(c->comm->world->rules, ROAD_STAGED, c->bytes) == ROAD_PINNED)
        return false;
    if (d->streams->given_up) {
        text_add(why, "copies of an operation that failed have not ended");
        return false;
    }
    if (!direct_brings(c))
        return true;
    if (device_slots_open(slots, c->comm, d->gpu, why) < 0
        || direct_lend(c, share, &slots->pointer, (size_t)DEVICE_SLOTS * DEVICE_SLOT_BYTES, lent,
                       why)
            < 0)
        return false;
    lent->keep = KEEP_STAGING;
    return true;
}

uint64_t direct_offer(struct coll *c, struct text *why)
{
    struct direct *p = c->gpu.call->direct;
    struct ipc_export *share = can_go(c, why) ? share_of(c->comm->world, why) : NULL;
    if (!share)
        return 0;
    ipc_export_begin(share);
    struct card *card = cards_of(c);
    if (!card) {
        text_add(why, "no memory in the arena");
        return 0;
    }
    uint64_t ways = lends_place(c, share, why) ? CARD_PLACE : 0;
    if (!ways || c->comm->gpu.stages || !direct_brings(c)) {
        if (why->used)
            text_add(why, "; ");
        ways |= lends_staging(c, share, why) ? CARD_STAGING : 0;
    }
    card += c->op.claim.seq & 1;
    card->ways = ways;
    card->send = p->mine.send;
    card->recv = p->mine.recv;
    card->staging = p->mine.staging;
    direct_offer_proof(c, share, card);
    store_relaxed64(&card->number, c->op.claim.seq);                 /* relaxed: E1 publishes it */
    return ways ? (uint64_t)((char *)card - c->comm->world->arena.base) : 0;
}
