/* What is published beside the place: where the block begins, how much of it has pages, and what
 * rank 0 wants next in operations like this one. The block is one of two, its owner's or the
 * other's; so a broken word leads no rank to write anywhere else.
 * Cost: a store in a line that is written anyway, a load from one that is here. */
#include "coll/swap.h"

#include "arena/span.h"

enum { PAGE = 4096, WANTED = 1 << 11, PAGES = WANTED - 1 };

_Static_assert(SWAP_ROOM / PAGE <= PAGES && WANTED < PAGE, "all of it stands below a page");

int swap_row(enum kind kind)
{
    switch (kind) {
    case KIND_ALL_REDUCE: return 0;
    case KIND_ALL_GATHER: return 1;
    case KIND_ALL_TO_ALL: return 2;
    case KIND_REDUCE_SCATTER: return 3;
    default: return -1;
    }
}

/* The tries of operations like this one. */
static struct epochs *tries(const struct coll *c)
{
    size_t times = c->bytes / SWAP_TRIED | 1;
    int class = 63 - __builtin_clzll((unsigned long long)times), most = SWAP_EAGER_CLASSES - 1;
    return &c->comm->coll.swap.epochs[swap_row(c->algorithm->kind)][class < most ? class : most];
}

bool swap_may(const struct coll *c)
{
    enum kind kind = c->algorithm->kind;
    bool whole = kind == KIND_ALL_REDUCE || kind == KIND_ALL_GATHER,
         half = kind == KIND_ALL_TO_ALL || kind == KIND_REDUCE_SCATTER;    /* the rest is its own */
    return c->bytes >= SWAP_LEAST && (whole || (half && c->bytes >= 2 * SWAP_LEAST))
        && swap_here(c->comm) && !c->gpu.call;
}

/* Gives the block its first pages, or more of them. */
static bool touched(struct coll *c, struct swap *h, size_t bytes)
{
    size_t more = layout_round(bytes, PAGE);
    if (h->bytes < more && comm_touch(h->mine + h->bytes, more - h->bytes, &c->comm->stage.fresh))
        return false;
    h->bytes = h->bytes < more ? more : h->bytes;
    return true;
}

char *swap_block(struct coll *c, size_t bytes)
{
    struct swap *h = &c->comm->coll.swap;
    int error;
    if ((c->bytes >= SWAP_TRIED && tries(c)->off) || c->op.claim.seq < h->from
        || bytes > SWAP_ROOM)
        return NULL;
    if (!h->own)
        h->mine = h->own = comm_hold_bare(c->comm, SWAP_ROOM, &error);
    if (!h->own || !touched(c, h, bytes))
        return NULL;
    comm_stage_earn(c->comm, bytes);
    return h->mine;
}

void swap_publish(struct coll *c, const char *block)
{
    struct swap *h = &c->comm->coll.swap;
    uint64_t word = tries(c)->off ? 0 : WANTED;
    c->hands = block ? HANDS_PUBLISHED : HANDS_NONE;
    if (block) {
        word |= (uint64_t)(block - c->comm->world->arena.base) | h->bytes / PAGE;
        h->from = c->op.claim.seq + 2;
    }
    /* relaxed: E1 publishes it */
    store_relaxed64(&c->comm->watch.mine->arrival[c->op.claim.seq & 1].payload[1], word);
}

/* The other's block, if that is what it must be: its own one where I have published mine. */
static char *theirs(const struct coll *c, struct swap *h, uint64_t word)
{
    const struct arena *arena = &c->comm->world->arena;
    const struct watch *w = &c->comm->watch;
    size_t bytes = (word & PAGES) * PAGE;
    char *at = coll_place(c->comm, word / PAGE * PAGE, SWAP_ROOM);
    if (!at || !bytes || bytes > SWAP_ROOM)
        return NULL;
    if (h->mine == h->own && !h->theirs) {
        uint32_t rank = arena_slot_rank(arena, w->slot, !w->me);
        char *span = rank == RANK_NOBODY ? NULL : arena_span(arena, rank);
        if (!span || at < span || at + SWAP_ROOM > span + arena->header->span_bytes)
            return NULL;
        h->theirs = at;
    }
    return at == (h->mine == h->own ? h->theirs : h->own) ? at : NULL;
}

void swap_take(struct coll *c)
{
    struct swap *h = &c->comm->coll.swap;
    const struct watch *w = &c->comm->watch;
    if (!c->hands || coll_any_device(c))
        return;
    /* relaxed: after E1 */
    uint64_t word = load_relaxed64(&watch_arrival(w, !w->me, c->op.claim.seq)->payload[1]);
    char *got = c->hands == HANDS_PUBLISHED ? theirs(c, h, word) : NULL;
    if (got) {
        h->mine = got;
        h->bytes = (word & PAGES) * PAGE;
        h->from = c->op.claim.seq + 1;
    } else if (c->hands == HANDS_PUBLISHED || word & PAGES)
        h->from = c->op.claim.seq + 2;                 /* both, or they would publish by turns */
    if (w->me == 1)
        tries(c)->off = !(word & WANTED);
}

void swap_learn(struct coll *c)
{
    if (!c->hands || c->lends || c->comm->watch.me == 1 || c->bytes < SWAP_TRIED)
        return;
    if (!comm_stage_paid(c->comm)) {
        tries(c)->off = false;
        return;
    }
    epochs_learn(tries(c), c->fold.ticks, c->bytes);
}
