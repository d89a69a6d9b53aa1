/* Per rank and byte of the vector, N ranks: (N-1)/N copied in, 1/N folded from N places, (N-1)/N copied out; partial sums never travel,
 * so the bits do not depend on how the work was cut. A rank never copies in the piece it folds itself. The three stages run as far as
 * they can in each call of advance, oldest round first, so copying in, folding and copying out of neighbouring rounds overlap. */
#include "coll/ring.h"

#include "pattern/chunk.h"

#include <errno.h>

static size_t ring_slot_bytes(uint32_t ranks) { return ring_piece_bytes(ranks) * (ranks + 1); }

int ring_open(struct coll *c, size_t parts, size_t commit_at, int committer, bool gives)
{
    struct watch *w = &c->comm->watch;
    size_t most = ring_slot_bytes(w->size) / (parts + 1) / c->width;
    c->ring.slot = ring_slot_bytes(w->size);
    if (gives) {
        int r = comm_stage_ring(c->comm, RING_DEPTH * c->ring.slot);
        if (r < 0)
            return r;
    }
    c->ring.piece = chunk_piece(c->count, parts, c->width, most);
    c->ring.total = chunk_rounds(c->count, parts, c->ring.piece);
    c->ring.in = c->ring.fold = c->ring.out = 0;
    c->ring.base = c->comm->rounds;
    c->comm->rounds += c->ring.total;
    /* Without rounds nobody raises a word, and a broadcast may have left the committers' behind the count: arrival is all. */
    c->op.claim.commit_at = c->ring.total ? commit_at : 0;
    c->op.claim.commit = c->ring.base + c->ring.total;
    c->op.claim.committer = committer;
    coll_publish(c, gives ? c->comm->stage.ring : NULL);
    return 0;
}

void ring_close(struct coll *c)
{
    struct watch *w = &c->comm->watch;
    if (load_relaxed64(&w->mine->consumed) < c->ring.base + c->ring.total)           /* relaxed: our own word */
        watch_raise(w, &w->mine->consumed, c->ring.base + c->ring.total);            /* E18 release */
}

static shared64 *ring_word(const struct coll *c, uint32_t p, size_t at)
{
    return (shared64 *)(void *)((char *)&c->comm->watch.members[p] + at);
}

int ring_await(struct coll *c, size_t word_at, uint64_t rounds, int only)
{
    struct watch *w = &c->comm->watch;
    for (uint32_t p = 0; p < w->size; p++) {
        if (p == w->me || (only >= 0 && (uint32_t)only != p))
            continue;
        shared64 *word = ring_word(c, p, word_at);
        if (load_acquire64(word) < c->ring.base + rounds) {          /* E16 acquire, E17 acquire */
            c->op.wait = (struct wait){ word, c->ring.base + rounds, (int)p, false };
            return WAITING;
        }
    }
    return DONE;
}

int ring_licence(struct coll *c, uint64_t round)
{
    struct watch *w = &c->comm->watch;
    uint64_t now = c->ring.base + round, need = now >= RING_DEPTH ? now - RING_DEPTH + 1 : 0;
    for (uint32_t p = 0; p < w->size; p++) {
        shared64 *word = &w->members[p].consumed;
        if (p == w->me || load_acquire64(word) >= need || w->gone[p] != GONE_NO)     /* E18 acquire */
            continue;
        c->op.wait = (struct wait){ word, need, (int)p, true };
        return WAITING;
    }
    return DONE;
}

static char *ring_slot(char *ring, const struct coll *c, uint64_t round)
{
    return ring + (c->ring.base + round) % RING_DEPTH * c->ring.slot;
}

static struct chunk ring_piece(const struct coll *c, uint64_t round, uint32_t p)
{
    return chunk_of(c->count, c->comm->watch.size, c->ring.piece, round, p);
}

static int ring_in(struct coll *c)
{
    struct watch *w = &c->comm->watch;
    if (ring_licence(c, c->ring.in) == WAITING)
        return WAITING;
    char *slot = ring_slot(c->comm->stage.ring, c, c->ring.in);
    for (uint32_t p = 0; p < w->size; p++) {
        struct chunk chunk = ring_piece(c, c->ring.in, p);
        if (p != w->me)
            coll_copy(c, slot + p * c->ring.piece * c->width, (const char *)c->send + chunk.first * c->width, chunk.count * c->width);
    }
    c->ring.in++;
    watch_raise(w, &w->mine->produced, c->ring.base + c->ring.in);   /* E16 release */
    return DONE;
}

static int ring_fold(struct coll *c, bool wants)
{
    struct watch *w = &c->comm->watch;
    if (ring_await(c, offsetof(struct member, produced), c->ring.fold + 1, -1) == WAITING)
        return WAITING;
    struct chunk chunk = ring_piece(c, c->ring.fold, w->me);
    const void *from[RANKS_MAX];
    for (uint32_t p = 0; p < w->size; p++) {
        char *ring = p == w->me ? NULL : coll_peer(c, p, RING_DEPTH * c->ring.slot);
        if (p != w->me && !ring)
            return -EPROTO;
        from[p] = ring ? ring_slot(ring, c, c->ring.fold) + w->me * c->ring.piece * c->width
                       : (const char *)c->send + chunk.first * c->width;
    }
    char *to = ring_slot(c->comm->stage.ring, c, c->ring.fold) + w->size * c->ring.piece * c->width;
    coll_fold(c, to, from, chunk.count);
    c->ring.fold++;
    watch_raise(w, &w->mine->folded, c->ring.base + c->ring.fold);   /* E17 release */
    if (wants)
        coll_copy(c, (char *)c->recv + chunk.first * c->width, to, chunk.count * c->width);
    return DONE;
}

static int ring_out(struct coll *c, bool wants)
{
    struct watch *w = &c->comm->watch;
    if (ring_await(c, offsetof(struct member, folded), c->ring.out + 1, -1) == WAITING)
        return WAITING;
    for (uint32_t p = 0; wants && p < w->size; p++) {
        if (p == w->me)
            continue;
        char *ring = coll_peer(c, p, RING_DEPTH * c->ring.slot);
        if (!ring)
            return -EPROTO;
        struct chunk chunk = ring_piece(c, c->ring.out, p);
        coll_copy(c, (char *)c->recv + chunk.first * c->width, ring_slot(ring, c, c->ring.out) + w->size * c->ring.piece * c->width,
                  chunk.count * c->width);
    }
    c->ring.out++;
    watch_raise(w, &w->mine->consumed, c->ring.base + c->ring.out);  /* E18 release */
    return DONE;
}

int ring_reduce_advance(struct coll *c, bool wants)
{
    if (c->phase == GATE_START) {
        int r = ring_open(c, c->comm->watch.size, offsetof(struct member, folded), -1, true);
        if (r < 0)
            return r;
        watch_arrive(&c->comm->watch, &c->op.claim);
        c->phase = GATE_WAIT;
    }
    if (c->phase == GATE_WAIT) {
        /* The first rounds can be copied in before anybody else is there. */
        while (c->ring.in < c->ring.total && ring_in(c) == DONE) { }
        if (watch_all_arrived(&c->op) == WAITING)
            return WAITING;
        c->phase = AFTER_GATE;
    }
    while (c->ring.out < c->ring.total) {
        bool moved = false;
        if (c->ring.in < c->ring.total && c->ring.in < c->ring.out + RING_DEPTH)
            moved = ring_in(c) == DONE;
        if (c->ring.fold < c->ring.in) {
            int r = ring_fold(c, wants);
            if (r < 0)
                return r;
            moved |= r == DONE;
        }
        if (c->ring.out < c->ring.fold) {
            int r = ring_out(c, wants);
            if (r < 0)
                return r;
            moved |= r == DONE;
        }
        if (!moved)
            return WAITING;            /* on what the oldest round needs: that stage was asked last */
    }
    ring_close(c);
    return DONE;
}
