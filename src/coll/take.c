/* One code for every way a block travels: the way says where a block lies, this file copies or
 * folds it. */
#include "coll/take.h"

#include "base/error.h"
#include "coll/cma.h"
#include "coll/parts.h"

#include <errno.h>

void take_own(struct coll *c)
{
    uint32_t me = c->comm->watch.me;
    coll_copy(c, parts_recv(c, me), parts_send(c, me), parts_count(c, me, me) * c->width);
    c->kept = true;
}

static int take_fold(struct coll *c, take_at_fn *at, size_t first, size_t n, char *scratch)
{
    unsigned how = parts_how(c);
    uint32_t me = c->comm->watch.me,
             ranks = how & PARTS_LOWER ? me + !(how & PARTS_STRICT) : c->comm->watch.size;
    const void *from[RANKS_MAX];
    if (n == 0 || ranks == 0)
        return DONE;
    for (uint32_t p = 0; p < ranks; p++) {
        struct spot spot = p == me && !scratch
            ? (struct spot){ parts_send(c, me) + first * c->width, 0 }
            : at(c, p, first, n);
        int r = spot.far ? cma_read(c, p, cma_stretch(c, p), spot.far, n * c->width)
            : spot.at ? DONE
            : DAMAGED;
        if (r != DONE)
            return r;
        from[p] = spot.far ? cma_stretch(c, p) : spot.at;
    }
    char *to = parts_recv(c, me) + first * c->width;
    if (!scratch) {
        coll_fold_out(c, to, from, ranks, n, STREAM_LEAST);
        return DONE;
    }
    coll_fold(c, scratch, from, ranks, n);
    coll_copy_out(c, to, scratch, n * c->width);
    return DONE;
}

/* A far block goes through a window of fixed size. Then there is no device, and no scratch. */
static int take_folds(struct coll *c, take_at_fn *at, size_t first, size_t n, char *scratch)
{
    size_t most = c->cma.may == CMA_YES ? cma_stretch_bytes(c) / c->width : n;
    int r = DONE;
    n = parts_cut(parts_count(c, c->comm->watch.me, c->comm->watch.me), first, n);
    for (size_t done = 0; done < n && r == DONE; done += most)
        r = take_fold(c, at, first + done, n - done < most ? n - done : most, scratch);
    return r;
}

int take_all(struct coll *c, take_at_fn *at, size_t first, size_t n, char *scratch)
{
    unsigned how = parts_how(c);
    uint32_t me = c->comm->watch.me, size = c->comm->watch.size;
    if (how & PARTS_FOLD)
        return take_folds(c, at, first, n, scratch);
    /* Each rank begins with itself, then its neighbour, so that not all read from the same rank at
       once. */
    for (uint32_t i = 0; i < size; i++) {
        uint32_t p = me + i < size ? me + i : me + i - size;
        bool kept = p == me && parts_keeps(c) && !c->kept;
        if (!kept && !parts_moves(c, p, me))
            continue;
        size_t some = parts_cut(parts_count(c, p, me), first, n);
        if (some == 0)
            continue;
        struct spot spot = kept ? (struct spot){ parts_send(c, me) + first * c->width, 0 }
                                : at(c, p, first, some);
        char *to = parts_recv(c, p) + first * c->width;
        int r = spot.far ? cma_read(c, p, to, spot.far, some * c->width) : spot.at ? DONE : DAMAGED;
        if (r != DONE)
            return r;
        if (!spot.far)
            coll_copy_out(c, to, spot.at, some * c->width);
    }
    return DONE;
}

bool take_may_beside(const struct coll *c)
{
    uint32_t me = c->comm->watch.me;
    return c->stream.on && !c->gpu.mover
        && !(parts_how(c) & (PARTS_FOLD | PARTS_UNEVEN | PARTS_ROOT_GIVES))
        && parts_gives(c, me) && parts_keeps(c) && c->sends.lo == c->sends.hi
        && parts_recv(c, me) != parts_send(c, me);
}

enum { BITS = 64 };
static uint64_t bit(uint64_t round) { return UINT64_C(1) << (round % BITS); }

void take_beside(struct coll *c, char *slot, const char *given, size_t first, size_t n)
{
    uint32_t me = c->comm->watch.me;
    if (c->pipeline.asked - c->pipeline.taking >= BITS)  /* no bit is free */
        (c->swap.on ? coll_copy : coll_copy_in)(c, slot, given, n * c->width);
    else if (coll_copy_beside(c, slot, given, parts_recv(c, me) + first * c->width,
                              parts_send(c, me) + first * c->width, n * c->width, c->swap.on))
        c->pipeline.kept |= bit(c->pipeline.asked);
}

bool take_was_beside(const struct coll *c)
{
    return c->pipeline.kept & bit(c->pipeline.taking);
}

void take_past(struct coll *c, uint64_t rounds)
{
    c->pipeline.kept &= ~bit(c->pipeline.taking);
    c->pipeline.taking += rounds;
}
