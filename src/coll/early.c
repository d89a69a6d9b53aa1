/* The words lie apart from the arrival, whose line the other rank polls at the gate. What may be
 * garbage there is checked: the number and the descriptor say that the other rank is in the same
 * operation, and the place is one of the arena. */
#include "coll/early.h"

#include "base/copy.h"
#include "coll/parts.h"
#include "coll/take.h"

enum { CHUNKS = 4, EARLY_GATHERED = TINY(64 << 10, 256) };
/* without a chunk more: the other rank is late, or has lost its CPU */
enum { EARLY_SPINS = TINY(256, 2) };
enum { CHUNK_LEAST = TINY(8 << 10, 64), CHUNK_MOST = TINY(32 << 10, 64) };
enum { GATHERED_MOST = TINY(64 << 10, 64) };

_Static_assert(EAGER_EACH_BYTES / CHUNK_LEAST < 1 << EARLY_BITS, "the chunks are counted");

static size_t early_chunk(const struct coll *c, size_t bytes)
{
    size_t chunk = bytes / CHUNKS / 64 * 64,
           most = c->algorithm->kind == KIND_GATHER ? GATHERED_MOST : CHUNK_MOST;
    return chunk < CHUNK_LEAST ? CHUNK_LEAST : chunk > most ? most : chunk;
}

/* Who leaves does not stay for it where one instruction copies: to look whether the other one waits
 * takes longer than the other one gains. On a Zen 5, broadcast of 16 KiB, mean of both ranks: 0.95
 * us far and 0.46 near in place of 1.04 and 0.48; 64 KiB 1.09 and 1.12 of the time. */
static size_t early_least(const struct coll *c)
{
    return c->comm->world->flags & TUTTI_LEAVE && copy_takes_over(EARLY_LEAST) ? EARLY_LEFT
                                                                              : EARLY_LEAST;
}

/* A root of a gather copies its own block first. Where one instruction copies, the other rank takes
 * longer between CPUs far apart, since it takes lines over: the root follows it. */
static bool early_kind(const struct coll *c, size_t bytes)
{
    enum kind kind = c->algorithm->kind;
    return kind == KIND_BROADCAST || kind == KIND_REDUCE || kind == KIND_SCAN || kind == KIND_EXSCAN
        || (kind == KIND_GATHER && bytes >= EARLY_GATHERED && copy_takes_over(bytes));
}

bool early_may(const struct coll *c)
{
    const struct tutti_comm *comm = c->comm;
    size_t bytes = c->count * c->width;
    return comm->watch.size == 2 && !comm->crowded && !comm->coll.devices && !c->gpu.call
        && bytes >= early_least(c) && early_kind(c, bytes)
        && !fingerprint_hashed(c->op.claim.descriptor);
}

/* A result in place would overwrite what is given: if the operation fails, it is lost. */
void early_expect(struct coll *c)
{
    c->expects = early_may(c)
        && (!(parts_how(c) & PARTS_FOLD) || (c->fold.kernel && c->send != c->recv));
}

void early_put(struct coll *c, char *slot, const char *from, size_t bytes)
{
    struct member *mine = c->comm->watch.mine;
    uint64_t seq = c->op.claim.seq, count = 0;
    const struct arrival *peer = watch_arrival(&c->comm->watch, !c->comm->watch.me, seq);
    size_t chunk = early_chunk(c, bytes), done = chunk;
    cpu_fetch((const void *)&peer->seq);
    coll_copy_in(c, slot, from, done);
    /* relaxed: a hint */
    bool waits = load_relaxed64(&peer->seq) >= seq;
    if (waits) {
        /* relaxed: E122 publishes both */
        store_relaxed64(&mine->early_at, (uint64_t)(slot - c->comm->world->arena.base));
        store_relaxed64(&mine->early_what, c->op.claim.descriptor);         /* relaxed: as above */
    }
    for (size_t n; done < bytes; done += n) {
        if (waits)
            store_release64(&mine->early, early_word(seq, ++count));             /* E122 release */
        n = waits && bytes - done > chunk ? chunk : bytes - done;
        coll_copy_in(c, slot + done, from + done, n);
    }
}

/* Where the slot is, if the other rank is in the same operation. */
static const char *early_slot(const struct coll *c, const struct member *peer)
{
    /* relaxed: after E122 */
    if (load_relaxed64(&peer->early_what) != c->op.claim.descriptor)
        return NULL;
    return coll_place(c->comm, load_relaxed64(&peer->early_at), c->bytes);  /* relaxed: as above */
}

static void early_some(struct coll *c, const char *slot, size_t first, size_t bytes)
{
    uint32_t me = c->comm->watch.me;
    if (parts_how(c) & PARTS_FOLD) {                    /* of an exscan: what the other gives */
        const void *from[2];
        from[me] = (const char *)c->send + first;
        from[!me] = slot + first;
        coll_fold(c, (char *)c->recv + first, from, c->even.end, bytes / c->width);
    } else
        coll_copy_out(c, parts_recv(c, !me) + first, slot + first, bytes);
}

void early_take(struct coll *c)
{
    const struct watch *w = &c->comm->watch;
    const struct member *peer = &w->members[!w->me];
    uint64_t seq = c->op.claim.seq, count;
    size_t bytes = c->count * c->width, chunk = early_chunk(c, bytes);
    const char *slot = NULL;
    if (c->even.keeps)
        take_own(c);                /* meanwhile the other rank says how much is there */
    for (int idle = 0; idle < (w->budget.spin_ticks ? EARLY_SPINS : 1); idle++) {
        count = early_count(load_acquire64(&peer->early), seq);                /* E122 acquire */
        size_t there = count < bytes / chunk ? count * chunk : bytes / chunk * chunk;
        if (there > c->early) {
            if (!slot && !(slot = early_slot(c, peer)))
                return;
            coll_look(c, slot);
            early_some(c, slot, c->early, there - c->early);
            c->early = there;
            idle = 0;
        } else if (watch_seq(watch_arrival(w, !w->me, seq)) >= seq)          /* E1 acquire */
            return;
        cpu_pause();
    }
}
