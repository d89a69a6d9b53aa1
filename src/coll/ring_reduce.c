/* Reduce-scatter, then hand out: each rank folds one piece of every round, everybody who wants the result copies it out.
 *
 *   in(r)    licence, where the slot will be written. The others' pieces of my buffer, where they do not lie in the arena; produced = r + 1
 *   fold(r)  all have produced r: fold my piece of everybody's, in rank order, into my result;      folded = r + 1
 *   out(r)   all have folded r: copy their pieces out, if I want them;                              consumed = r + 1
 *
 * A slot holds the N pieces that this rank gives to the others in one round (its own stays empty), then the piece that it folds. Where its
 * receive buffer lies in the arena the folded piece goes there at once. C(k) asks that everybody has folded the last round: then all of
 * the result is in the arena and each living rank can finish alone; it stays until nobody reads its buffers any more.
 *
 * Per rank and byte of the vector, N ranks: (N-1)/N copied in (nothing from the arena), 1/N folded from N places, (N-1)/N copied out;
 * partial sums never travel, so the bits do not depend on how the work was cut. A rank never copies in the piece it folds itself. The
 * three stages run as far as they can in each call of advance, oldest round first, so neighbouring rounds overlap.
 * In place in the arena: my piece of p's buffer is read by me alone, and p writes there only after I have folded it. */
#include "coll/ring.h"
#include "coll/stream.h"

#include <errno.h>

static struct chunk reduce_piece(const struct coll *c, uint64_t round, uint32_t p)
{
    return chunk_of(c->count, c->comm->watch.size, c->ring.piece, round, p);
}

/* The buffers of the call are one, or many in a row: elements [first, …) lie together in (at most) the first run. */
struct run { const char *send; char *recv; size_t count; };

static struct run reduce_run(const struct coll *c, size_t first, size_t count)
{
    if (!c->lists.first)
        return (struct run){ (const char *)c->send + first * c->width, (char *)c->recv + first * c->width, count };
    size_t low = 0, high = (size_t)c->lists.n;
    while (high - low > 1) {
        size_t middle = (low + high) / 2;
        if (c->lists.first[middle] <= first)
            low = middle;
        else
            high = middle;
    }
    size_t at = first - c->lists.first[low], left = c->lists.first[low + 1] - first;
    return (struct run){ (const char *)c->lists.send[low] + at * c->width, (char *)c->lists.recv[low] + at * c->width, left < count ? left : count };
}

static void reduce_copy_in(struct coll *c, char *to, struct chunk chunk)
{
    for (size_t done = 0; done < chunk.count;) {
        struct run run = reduce_run(c, chunk.first + done, chunk.count - done);
        coll_copy(c, to + done * c->width, run.send, run.count * c->width);
        done += run.count;
    }
}

static void reduce_copy_out(struct coll *c, const char *from, struct chunk chunk)
{
    for (size_t done = 0; done < chunk.count;) {
        struct run run = reduce_run(c, chunk.first + done, chunk.count - done);
        coll_copy_out(c, run.recv, from + done * c->width, run.count * c->width);
        done += run.count;
    }
}

static bool reduce_lies(const struct coll *c, const struct place *at, struct chunk chunk)
{
    return ring_in_place(at, chunk.first * c->width, chunk.count * c->width);
}

/* Is nothing of this round ever written into this rank's slot? */
static bool reduce_slot_idle(const struct coll *c, uint64_t round)
{
    const struct watch *w = &c->comm->watch;
    for (uint32_t p = 0; p < w->size; p++) {
        struct chunk chunk = reduce_piece(c, round, p);
        if (chunk.count && !reduce_lies(c, p == w->me ? &c->recvs : &c->sends, chunk))
            return false;
    }
    return true;
}

static int reduce_in(struct coll *c)
{
    struct watch *w = &c->comm->watch;
    uint64_t began = c->ring.in;
    for (; c->ring.in < c->ring.total; c->ring.in++) {
        if (reduce_slot_idle(c, c->ring.in))
            continue;
        if (c->ring.in != began)
            break;                     /* what is there already is published first */
        if (ring_licence(c, c->ring.in, NULL) == WAITING)
            return WAITING;
        char *slot = ring_slot(c->comm->stage.ring, c, c->ring.in);
        for (uint32_t p = 0; p < w->size; p++) {
            struct chunk chunk = reduce_piece(c, c->ring.in, p);
            if (p != w->me && !reduce_lies(c, &c->sends, chunk))
                reduce_copy_in(c, slot + p * c->ring.piece * c->width, chunk);
        }
        c->ring.in++;
        break;
    }
    watch_raise(w, &w->mine->produced, c->ring.base + c->ring.in);   /* E16 release */
    return DONE;
}

/* p's contribution to my piece; NULL: it lies nowhere. */
static const char *reduce_from(const struct coll *c, uint32_t p, struct chunk chunk)
{
    uint32_t me = c->comm->watch.me;
    struct place place = ring_send_place(c, p);
    if (place.at && reduce_lies(c, &place, chunk))
        return coll_at(c, place.at + chunk.first * c->width, chunk.count * c->width);
    char *ring = coll_peer(c, p, RING_DEPTH * c->ring.slot);
    return ring ? ring_slot(ring, c, c->ring.fold) + me * c->ring.piece * c->width : NULL;
}

static int reduce_fold(struct coll *c, bool wants)
{
    struct watch *w = &c->comm->watch;
    if (ring_await(c, offsetof(struct member, produced), c->ring.fold + 1, NULL) == WAITING)
        return WAITING;
    struct chunk chunk = reduce_piece(c, c->ring.fold, w->me);
    const char *base[RANKS_MAX];
    for (uint32_t p = 0; p < w->size && chunk.count; p++) {
        base[p] = p == w->me ? NULL : reduce_from(c, p, chunk);
        if (p != w->me && !base[p])
            return -EPROTO;
    }
    char *to = reduce_lies(c, &c->recvs, chunk) ? (char *)c->recv + chunk.first * c->width
             : c->comm->stage.ring ? ring_slot(c->comm->stage.ring, c, c->ring.fold) + w->size * c->ring.piece * c->width : NULL;
    for (size_t done = 0; done < chunk.count;) {
        const void *from[RANKS_MAX];
        struct run run = reduce_run(c, chunk.first + done, chunk.count - done);
        for (uint32_t p = 0; p < w->size; p++)
            from[p] = p == w->me ? run.send : base[p] + done * c->width;
        coll_fold(c, to + done * c->width, from, w->size, run.count);
        done += run.count;
    }
    c->ring.fold++;
    watch_raise(w, &w->mine->folded, c->ring.base + c->ring.fold);   /* E17 release */
    if (wants && chunk.count && to != (char *)c->recv + chunk.first * c->width)
        reduce_copy_out(c, to, chunk);
    return DONE;
}

static int reduce_out(struct coll *c, bool wants)
{
    struct watch *w = &c->comm->watch;
    if (ring_await(c, offsetof(struct member, folded), c->ring.out + 1, NULL) == WAITING)
        return WAITING;
    for (uint32_t i = 1; wants && i < w->size; i++) {
        uint32_t p = (w->me + i) % w->size;
        struct chunk chunk = reduce_piece(c, c->ring.out, p);
        if (chunk.count == 0)
            continue;
        struct place place = ring_recv_place(c, p);
        const char *from;
        if (place.at && reduce_lies(c, &place, chunk))
            from = coll_at(c, place.at + chunk.first * c->width, chunk.count * c->width);
        else {
            char *ring = coll_peer(c, p, RING_DEPTH * c->ring.slot);
            from = ring ? ring_slot(ring, c, c->ring.out) + w->size * c->ring.piece * c->width : NULL;
        }
        if (!from)
            return -EPROTO;
        reduce_copy_out(c, from, chunk);
    }
    c->ring.out++;
    watch_raise(w, &w->mine->consumed, c->ring.base + c->ring.out);  /* E18 release */
    return DONE;
}

static int reduce_open(struct coll *c, bool all_want)
{
    uint32_t size = c->comm->watch.size;
    size_t most = ring_slot_bytes(size) / (size + 1) / c->width, bytes = c->count * c->width;
    c->sends = c->recvs = (struct place){ 0, 0, 0 };
    if (!c->lists.first && size > 1) {
        c->sends = comm_place(c->comm, c->send, bytes);
        c->recvs = all_want ? comm_place(c->comm, c->recv, bytes) : c->recvs;
    } else if (!c->lists.first)
        c->sends = c->recvs = (struct place){ 0, 0, bytes };         /* nobody else reads them, wherever they lie */
    bool whole = c->sends.lo == 0 && c->sends.hi == bytes && c->recvs.lo == 0 && c->recvs.hi == bytes;
    int r = ring_stage(c, !whole && c->count);
    if (r < 0)
        return r;
    c->ring.piece = chunk_piece(c->count, size, c->width, most);
    ring_begin(c, chunk_rounds(c->count, size, c->ring.piece));
    c->op.claim.commit_at = c->ring.total ? offsetof(struct member, folded) : 0;
    c->op.claim.commit = c->ring.base + c->ring.total;
    c->op.claim.committer = -1;
    ring_publish_places(c);
    stream_choose(c, bytes, c->send == c->recv || c->lists.first);
    return 0;
}

int ring_reduce_advance(struct coll *c, bool wants)
{
    if (c->phase == GATE_START) {
        int r = reduce_open(c, c->algorithm->kind != KIND_REDUCE);
        if (r < 0)
            return r;
        watch_arrive(&c->comm->watch, &c->op.claim);
        c->phase = GATE_WAIT;
    }
    if (c->phase == GATE_WAIT) {
        /* The first rounds can be copied in before anybody else is there. */
        while (c->ring.in < c->ring.total && reduce_in(c) == DONE) { }
        if (watch_all_arrived(&c->op) == WAITING)
            return WAITING;
        c->phase = AFTER_GATE;
    }
    while (c->ring.out < c->ring.total) {
        bool moved = false;
        if (c->ring.in < c->ring.total)
            moved = reduce_in(c) == DONE;
        if (c->ring.fold < c->ring.in) {
            int r = reduce_fold(c, wants);
            if (r < 0)
                return r;
            moved |= r == DONE;
        }
        if (c->ring.out < c->ring.fold) {
            int r = reduce_out(c, wants);
            if (r < 0)
                return r;
            moved |= r == DONE;
        }
        if (!moved)
            return WAITING;            /* on what the oldest round needs: that stage was asked last */
    }
    ring_close(c);
    stream_learn(c);
    return c->sends.hi > c->sends.lo || c->recvs.hi > c->recvs.lo ? ring_exit(c, NULL) : DONE;
}
