/* A broken word leads no rank to write outside the other's span.
 * Cost: a store in a line that is written anyway, a load from one that is here. */
#include "coll/pipeline_swap.h"

#include "arena/span.h"
#include "coll/parts.h"
#include "coll/swap.h"

enum { LEAST = TINY(EAGER_TWO_BYTES, 64), MOST = (LEAST << SWAP_CLASSES) - 1 };
enum { BLOCKS_BYTES = PIPELINE_SWAP_DEPTH * PIPELINE_SWAP_PIECE };
/* beside the offset of the blocks, which are aligned */
enum { WANTED = 1 };

void pipeline_swap_open(struct coll *c)
{
    struct tutti_comm *comm = c->comm;
    int kind = swap_row(c->algorithm->kind);
    c->swap.class = NULL;
    c->swap.agreed = c->swap.on = false;
    if (kind < 0 || c->algorithm->direct || comm->watch.size != 2 || comm->crowded
        || comm->coll.devices || c->bytes < LEAST
        || c->bytes > MOST)
        return;
    int class = 63 - __builtin_clzll((unsigned long long)(c->bytes / LEAST));
    c->swap.class = &comm->coll.pipeline_swap.classes[kind][class];
    c->swap.agreed = c->swap.class->on;
    c->swap.on = c->swap.agreed && !c->gpu.call;
    c->swap.base = comm->coll.pipeline_swap.rounds;
}

/* This rank's blocks, with pages. NULL: there is no memory. */
static char *own_blocks(struct tutti_comm *comm)
{
    char *got = comm->coll.pipeline_swap.own;
    int error;
    if (got)
        return got;
    got = comm_hold_bare(comm, BLOCKS_BYTES, &error);
    if (got && comm_touch(got, BLOCKS_BYTES, &comm->stage.fresh) < 0) {
        comm_hold_end(comm, got);
        got = NULL;
    }
    return comm->coll.pipeline_swap.own = got;
}

/* The tries of operations with such buffers. NULL: blocks are not to change hands in them. */
static struct epochs *tries(const struct coll *c, struct place results)
{
    size_t bytes = c->count * c->width;
    struct swap_class *class = c->swap.class;
    if (c->gpu.call)
        return NULL;
    if (c->sends.lo == c->sends.hi && results.lo == results.hi)
        return &class->epochs;
    return c->algorithm->kind == KIND_ALL_REDUCE && c->sends.lo == 0 && c->sends.hi == bytes
            && results.lo == 0 && results.hi == bytes
        ? &class->lying
        : NULL;
}

void pipeline_swap_publish(struct coll *c, struct place results)
{
    struct tutti_comm *comm = c->comm;
    struct swap_class *class = c->swap.class;
    if (!class)
        return;
    struct epochs *epochs = tries(c, results);
    if (epochs == &class->lying && comm->watch.me == 0 && epochs_new(epochs))
        epochs->off = true;            /* mostly they are best where they lie */
    char *own = epochs && !epochs->off ? own_blocks(comm) : NULL;
    c->swap.epochs = epochs && c->swap.on == !epochs->off ? epochs : NULL;
    c->swap.said = own ? (uint64_t)(own - comm->world->arena.base) | WANTED : 0;
    /* relaxed: E1 publishes it */
    store_relaxed64(&comm->watch.mine->arrival[c->op.claim.seq & 1].payload[1], c->swap.said);
}

/* The other's blocks, where it has said that they are; NULL: they cannot be there. */
static char *their_blocks(struct tutti_comm *comm, uint64_t word)
{
    const struct arena *arena = &comm->world->arena;
    const struct watch *w = &comm->watch;
    uint32_t rank = arena_slot_rank(arena, w->slot, !w->me);
    char *at = coll_place(comm, word & ~(uint64_t)WANTED, BLOCKS_BYTES),
         *span = rank == RANK_NOBODY ? NULL : arena_span(arena, rank);
    if (!at || !span || at < span || at + BLOCKS_BYTES > span + arena->header->span_bytes)
        return NULL;
    char *before = comm->coll.pipeline_swap.theirs;
    return before && at != before ? NULL : (comm->coll.pipeline_swap.theirs = at);
}

bool pipeline_swap_gate(struct coll *c)
{
    struct tutti_comm *comm = c->comm;
    const struct watch *w = &comm->watch;
    struct swap_class *class = c->swap.class;
    if (!class)
        return true;
    bool device = coll_any_device(c), undone = c->swap.on && device;
    /* relaxed: after E1 */
    uint64_t word = load_relaxed64(&watch_arrival(w, !w->me, c->op.claim.seq)->payload[1]);
    if (c->swap.agreed && !device)
        comm->coll.pipeline_swap.rounds += c->pipeline.total;
    c->swap.on = c->swap.on && !device;
    class->on = !device && c->swap.said && word && their_blocks(comm, word);
    return !undone;
}

bool pipeline_swap_free(const struct coll *c)
{
    return c->pipeline.asked < c->pipeline.taking + PIPELINE_SWAP_DEPTH;
}

char *pipeline_swap_block(const struct coll *c, uint32_t writer, uint64_t round)
{
    uint64_t at = c->swap.base + round;
    bool own = ((writer + at / PIPELINE_SWAP_DEPTH) & 1) == c->comm->watch.me;
    return (own ? c->comm->coll.pipeline_swap.own : c->comm->coll.pipeline_swap.theirs)
        + at % PIPELINE_SWAP_DEPTH * PIPELINE_SWAP_PIECE;
}

void pipeline_swap_learn(struct coll *c)
{
    struct swap_class *class = c->swap.class;
    c->swap.class = NULL;
    if (class && c->swap.epochs && c->comm->watch.me == 0)
        epochs_learn(c->swap.epochs, c->fold.ticks, c->bytes);
}
