/* The slot of operation k may be overwritten, or its block replaced, for k + 2: its owner is then
 * past k + 1, and a rank arrives at k + 1 only after it has returned from k. A rank folds its own
 * data from the caller's buffer, not from the slot. */
#include "coll/eager.h"

#include "base/copy.h"
#include "base/error.h"
#include "coll/early.h"
#include "coll/swap.h"
#include "coll/parts.h"
#include "coll/take.h"

#include <errno.h>

enum { EAGER_SOON = 32 << 10 };

int eager_put_nothing(struct coll *c)
{
    coll_publish(c, NULL);
    return 0;
}

int eager_slot(struct coll *c, char **slot)
{
    return comm_eager_slot(c->comm, c->op.claim.seq, c->bytes, slot);
}

/* Lending takes one more wait. Ranks that share CPUs gain by it only where they save a long copy. A
   scatter's root alone saves it, while all wait: it takes as long for each of more ranks. */
static size_t eager_lends_from(const struct coll *c)
{
    size_t ranks = c->comm->watch.size;
    return !c->comm->crowded ? LEND_LEAST
        : c->algorithm->kind == KIND_SCATTER && ranks > 4 ? ranks * (LEND_CROWDED_LEAST / 4)
        : LEND_CROWDED_LEAST;
}

/* The caller's buffer, if peers may read it in place, else NULL. They may if all of it is in the
   arena, with as many bytes behind it as they expect of the longest, and it is not written before
   they have read it. Not in a comm with devices, which copy out of registered memory only. */
static char *eager_lent(const struct coll *c, size_t bytes)
{
    if (bytes < eager_lends_from(c) || c->comm->coll.devices || c->gpu.call
        || (c->send == c->recv && c->algorithm->kind != KIND_BROADCAST))
        return NULL;
    struct place place = comm_place(c->comm, c->send, bytes);
    return place.lo == 0 && place.hi == bytes ? coll_at(c, place.at, c->bytes) : NULL;
}

/* True: the slot may be one that was written a few slots ago. One instruction takes lines over from
   who has read them, and a slot that is still in caches is faster than one further on: on a Zen 5,
   near, the mean of both ranks in broadcast and reduce of 16 KiB 0.40 and 0.44 us in place of 0.46
   and 0.50; far 1.02 of the time. From 64 KiB on it is slower. */
static bool eager_soon(const struct coll *c)
{
    enum kind kind = c->algorithm->kind;
    return c->comm->watch.size == 2 && c->bytes <= EAGER_SOON && copy_takes_over(c->bytes)
        && !c->gpu.call && (kind == KIND_BROADCAST || kind == KIND_REDUCE || kind == KIND_GATHER);
}

/* Puts all bytes but those from `own` to `after`, which no other rank reads. At the beginning or
   the end of a large slot they take no room: the published address lies before the slot, or the
   next slot begins earlier. Else all_to_all between 2 ranks would go round in half of the ring. */
static int eager_put_bytes(struct coll *c, size_t bytes, size_t own, size_t after)
{
    char *slot = eager_lent(c, bytes);
    const char *send = c->send;
    size_t first = own ? 0 : after, end = after == bytes ? own : bytes,
           skip = bytes >= EAGER_TURNS ? first : 0;
    c->lends = slot != NULL;
    bool may = swap_may(c);
    char *block = may && !c->lends ? swap_block(c, c->bytes - skip) : NULL;
    if (block)
        slot = block;
    int r = slot ? 0
        : bytes < EAGER_TURNS
        ? eager_slot(c, &slot)
        : comm_stage_eager(c->comm, c->op.claim.seq, c->bytes - skip, end - skip, eager_soon(c),
                           &slot);
    if (r < 0)
        return r;
    slot -= c->lends ? 0 : skip;
    if (block) {
        coll_copy(c, slot, send, own);
        coll_copy(c, slot + after, send + after, bytes - after);
    } else if (!c->lends && early_may(c)) {
        early_put(c, slot, send, bytes);
    } else if (!c->lends) {
        coll_copy_in(c, slot, send, own);
        coll_copy_in(c, slot + after, send + after, bytes - after);
        eager_wrote(c->comm, c->op.claim.seq, first, end - first);
    }
    coll_publish(c, slot);
    if (may)
        swap_publish(c, block);
    return 0;
}

int eager_put(struct coll *c) { return eager_put_bytes(c, c->bytes, c->bytes, c->bytes); }

static bool eager_at_root(const struct coll *c) { return (uint32_t)c->root == c->comm->watch.me; }

int eager_put_to_root(struct coll *c)
{
    if (!eager_at_root(c))
        return eager_put(c);
    early_expect(c);
    return eager_put_nothing(c);
}

int eager_put_parts(struct coll *c)
{
    const struct even *even = &c->even;
    if (even->gives) {
        bool each = even->gives > c->count * c->width;  /* its own block is not copied */
        return eager_put_bytes(c, even->gives, each ? even->at : even->gives,
                               each ? even->at + c->count * c->width : even->gives);
    }
    early_expect(c);
    if (even->keeps && !c->expects)
        take_own(c);                /* while the ranks that give copy into their slots */
    return eager_put_nothing(c);
}

int eager_put_lists(struct coll *c)
{
    uint32_t me = c->comm->watch.me;
    char *slot, *to;
    if (!parts_gives(c, me))
        return eager_put_nothing(c);
    if (!(parts_how(c) & PARTS_EACH)) {
        size_t bytes = parts_count(c, me, 0) * c->width;
        return eager_put_bytes(c, bytes, bytes, bytes);
    }
    int r = eager_slot(c, &slot);
    if (r < 0)
        return r;
    to = slot;
    for (uint32_t p = 0; slot && p < c->comm->watch.size; p++) {
        size_t bytes = parts_count(c, me, p) * c->width;
        if (p != me)
            coll_copy_in(c, to, parts_send(c, p), bytes);
        to += bytes;
    }
    coll_publish(c, slot);  /* without an element there is no slot, but the hash of the counts */
    return 0;
}

void eager_own_lines(struct tutti_comm *comm, uint64_t next)
{
    size_t first = comm->coll.prefetch.first[next], bytes = comm->coll.prefetch.written[next];
    if (first + bytes <= comm->stage.eager_bytes[next])
        cpu_own_all(comm->stage.eager[next] + first, bytes);
    comm->coll.prefetch.written[next] = 0;
}

/* Where p's slot is: noted for the next operation of this parity. NULL: outside the arena. */
static inline const char *eager_theirs(struct tutti_comm *comm, uint64_t seq, uint32_t p,
                                       size_t bytes)
{
    /* relaxed: after E1 */
    uint64_t at = load_relaxed64(&watch_arrival(&comm->watch, p, seq)->payload[0]);
    const char *slot = coll_place(comm, at, bytes);
    /* a rank gives two blocks at most */
    if (comm->watch.size == 2 && bytes <= 2 * PREFETCH_READ)
        comm->coll.prefetch.theirs[seq & 1] = slot;
    return slot;
}

bool eager_sources(struct tutti_comm *comm, uint64_t seq, const void *send, size_t bytes,
                   const void **from)
{
    const struct watch *w = &comm->watch;
    eager_own(comm, seq);
    for (uint32_t p = 0; p < w->size; p++) {
        from[p] = p == w->me
            ? send
            : eager_theirs(comm, seq, p, bytes);
        if (!from[p] && bytes)
            return false;
    }
    return true;
}

static void eager_fold_part(struct coll *c, const void *const from[], size_t first, size_t count)
{
    uint32_t size = c->comm->watch.size;
    const void *part[RANKS_MAX];
    for (uint32_t p = 0; p < size; p++)
        part[p] = (const char *)from[p] + first * c->width;
    coll_fold(c, (char *)c->recv + first * c->width, part, size, count);
}

/* A rank reads its own lent buffer while its peers read it, too. Ranks that begin at the same end
   wait for each other at every line, so each begins at another part. Measured, 2 ranks, 64 KiB: 3.4
   us from one end, 2.3 us from different parts. */
int eager_fold(struct coll *c)
{
    const void *from[RANKS_MAX];
    uint32_t size = c->comm->watch.size;
    swap_take(c);
    if (!eager_sources(c->comm, c->op.claim.seq, c->send, c->bytes, from))
        return DAMAGED;
    coll_look(c, from[size > 1 && !c->comm->watch.me]);
    size_t first = c->lends ? c->count / size / LINE * LINE * c->comm->watch.me : 0,
           done = c->early ? c->early / c->width : 0;
    if (first)
        eager_fold_part(c, from, first, c->count - first);
    eager_fold_part(c, from, done, (first ? first : c->count) - done);
    swap_learn(c);
    return 0;
}

int eager_fold_at_root(struct coll *c) { return eager_at_root(c) ? eager_fold(c) : 0; }

bool eager_ready(const struct tutti_comm *comm, uint64_t seq, size_t bytes)
{
    return (bytes < SWAP_LEAST || !swap_here(comm)) && bytes <= comm->stage.eager_bytes[seq & 1];
}

void eager_store(struct tutti_comm *comm, uint64_t seq, const void *send, size_t bytes)
{
    char *slot = comm->stage.eager[seq & 1];
    copy_by_loop(slot, send, bytes);
    eager_wrote(comm, seq, 0, bytes);
    /* relaxed: E1 publishes it */
    store_relaxed64(&comm->watch.mine->arrival[seq & 1].payload[0],
                    (uint64_t)(slot - comm->world->arena.base));
}

static struct spot eager_at(const struct coll *c, uint32_t p, size_t first, size_t n)
{
    (void)first;
    (void)n;
    const char *slot = coll_peer(c, p, c->bytes);
    return (struct spot){ slot ? slot + parts_offset(c, p, c->comm->watch.me) : NULL, 0 };
}

int eager_take_lists(struct coll *c)
{
    eager_own(c->comm, c->op.claim.seq);
    return take_all(c, eager_at, 0, SIZE_MAX, NULL);
}

static inline int eager_take_from(struct coll *c, uint32_t p)
{
    const char *slot = eager_theirs(c->comm, c->op.claim.seq, p, c->bytes);
    if (!slot)
        return DAMAGED;
    coll_look(c, slot);
    coll_copy_out(c, (char *)c->recv + p * c->even.step + c->early, slot + c->even.at + c->early,
                  c->even.takes - c->early);
    return 0;
}

static int eager_take_parts(struct coll *c)
{
    const struct even *even = &c->even;
    uint32_t me = c->comm->watch.me, size = c->comm->watch.size;
    eager_own(c->comm, c->op.claim.seq);
    if (even->keeps && !c->kept)
        coll_copy_out(c, (char *)c->recv + me * even->step, (const char *)c->send + even->at,
                      even->keeps);
    if (!even->takes)
        return 0;
    if (size == 2 || even->end - even->first == 1)
        return eager_take_from(c, size == 2 ? !me : even->first);
    /* Each rank begins with its neighbour, so that not all read from the same rank at once. */
    for (uint32_t i = 1; i < size; i++) {
        int r = eager_take_from(c, me + i < size ? me + i : me + i - size);
        if (r < 0)
            return r;
    }
    return 0;
}

int eager_take(struct coll *c)
{
    swap_take(c);
    int r = eager_take_parts(c);
    swap_learn(c);
    return r;
}

int eager_take_folded(struct coll *c)
{
    const struct even *even = &c->even;
    const void *from[RANKS_MAX];
    swap_take(c);
    if (even->end == 0 || c->count == 0)
        return 0;
    eager_own(c->comm, c->op.claim.seq);
    for (uint32_t p = 0; p < even->end; p++) {
        const char *slot = p == c->comm->watch.me
            ? c->send
            : eager_theirs(c->comm, c->op.claim.seq, p, c->bytes);
        if (!slot)
            return DAMAGED;
        from[p] = slot + even->at + c->early;
    }
    coll_fold(c, (char *)c->recv + c->early, from, even->end, c->count - c->early / c->width);
    swap_learn(c);
    return 0;
}
