/* The words only grow, over all operations of a comm, so nothing is reset between them. A licence
 * makes no peer do more than it must do anyway: it waits for the ranks that take in this operation,
 * and, for slots last used by an earlier operation, until all ranks have returned from that. */
#include "coll/pipeline.h"

int pipeline_stage(struct coll *c, bool needed, uint64_t rounds, size_t used)
{
    uint32_t size = c->comm->watch.size;
    c->pipeline.slot = pipeline_slot_now(c);
    c->pipeline.depth = pipeline_depth_now(c);
    c->pipeline.in = c->pipeline.asked = c->pipeline.fold = c->pipeline.taking = c->pipeline.out =
        c->pipeline.total = c->pipeline.mine = 0;
    c->pipeline.base = c->comm->coll.rounds;
    /* if this operation does not need the pipeline, another comm may borrow it at any moment */
    c->pipeline.at = NULL;
    /* only after the gate is it known whether private memory is read in place */
    if (needed || c->cma.may != CMA_NO) {
        bool all = c->comm->coll.devices || c->gpu.mover;     /* the driver registers all of it */
        struct pipeline_need need = {
            pipeline_all_slots(c) + 2 * pipeline_rows_bytes(size), c->pipeline.slot, used,
            pipeline_depth_now(c), (uint32_t)(c->pipeline.base % pipeline_depth_now(c)),
            all ? PIPELINE_ANY : rounds
        };
        int r = comm_stage_pipeline(c->comm, &need);
        if (r < 0)
            return r;
        c->pipeline.at = c->comm->stage.pipeline;
    }
    coll_publish(c, c->pipeline.at);
    return 0;
}

void pipeline_begin(struct coll *c, uint64_t total)
{
    c->pipeline.total = total;
    c->comm->coll.rounds = c->pipeline.base + total;
}

void pipeline_close(struct coll *c)
{
    struct watch *w = &c->comm->watch;
    /* relaxed: our own word */
    if (load_relaxed64(&w->mine->consumed) < c->pipeline.base + c->pipeline.total)
        watch_raise(w, &w->mine->consumed, c->pipeline.base + c->pipeline.total);  /* E18 release */
    if (c->comm->stage.pipeline_busy)
        comm_pipeline_leave(c->comm);
}

char *pipeline_slot(char *pipeline, const struct coll *c, uint64_t round)
{
    return pipeline + (c->pipeline.base + round) % c->pipeline.depth * c->pipeline.slot;
}

struct part_row *pipeline_rows(const struct coll *c, char *pipeline)
{
    uint32_t size = c->comm->watch.size;
    return (struct part_row *)(void *)(pipeline + pipeline_all_slots(c)
                                       + (c->op.claim.seq & 1) * pipeline_rows_bytes(size));
}

const struct part_row *pipeline_rows_of(const struct coll *c, uint32_t p)
{
    char *pipeline =
        coll_peer(c, p, pipeline_all_slots(c) + 2 * pipeline_rows_bytes(c->comm->watch.size));
    return pipeline ? pipeline_rows(c, pipeline) : NULL;
}

static void pipeline_publish(struct arrival *mine, int word, const struct place *place)
{
    /* relaxed: E1 publishes it */
    store_relaxed64(&mine->more[word], place->lo < place->hi ? place->at : 0);
    store_relaxed64(&mine->more[word + 1], place->lo);                      /* relaxed: as above */
    /* relaxed: as above */
    store_relaxed64(&mine->more[word + 2], place->lo < place->hi ? place->hi : place->lo);
}

void pipeline_publish_places(struct coll *c)
{
    struct arrival *mine = &c->comm->watch.mine->arrival[c->op.claim.seq & 1];
    pipeline_publish(mine, 0, &c->sends);
    pipeline_publish(mine, 3, &c->recvs);
}

static struct place pipeline_place(const struct coll *c, uint32_t p, int word)
{
    const struct arrival *a = watch_arrival(&c->comm->watch, p, c->op.claim.seq);
    return pipeline_known(c,
                          /* relaxed: after E1 */
                          (struct place){ load_relaxed64(&a->more[word]),
                                          load_relaxed64(&a->more[word + 1]),
                                          load_relaxed64(&a->more[word + 2]) });
}

struct place pipeline_send_place(const struct coll *c, uint32_t p)
{
    return pipeline_place(c, p, 0);
}

struct place pipeline_recv_place(const struct coll *c, uint32_t p)
{
    return pipeline_place(c, p, 3);
}

static shared64 *pipeline_word(const struct coll *c, uint32_t p, size_t at)
{
    return (shared64 *)(void *)((char *)&c->comm->watch.members[p] + at);
}

int pipeline_await(struct coll *c, size_t word_at, uint64_t rounds, pipeline_who_fn *who)
{
    struct watch *w = &c->comm->watch;
    for (uint32_t p = 0; p < w->size; p++) {
        if (p == w->me || (who && !who(c, p)))
            continue;
        shared64 *word = pipeline_word(c, p, word_at);
        if (load_acquire64(word) < c->pipeline.base + rounds) {      /* E16 acquire, E17 acquire */
            c->op.wait = wait_for(word, c->pipeline.base + rounds, p);
            return WAITING;
        }
    }
    return DONE;
}

static int pipeline_consumed(struct coll *c, uint64_t need, pipeline_who_fn *who)
{
    struct watch *w = &c->comm->watch;
    for (uint32_t p = 0; p < w->size; p++) {
        shared64 *word = &w->members[p].consumed;
        /* E18 acquire */
        if (p == w->me || (who && !who(c, p)) || load_acquire64(word) >= need
            || watch_past(w, p, c->op.claim.seq))
            continue;
        c->op.wait = wait_for_or_gone(word, need, p);
        return WAITING;
    }
    return DONE;
}

int pipeline_licence(struct coll *c, uint64_t round, pipeline_who_fn *who)
{
    uint64_t now = c->pipeline.base + round;
    if (now < c->pipeline.depth)
        return DONE;
    uint64_t need = now - c->pipeline.depth + 1;
    return pipeline_consumed(c, need, need <= c->pipeline.base ? NULL : who);
}

int pipeline_read(struct coll *c, uint64_t rounds, pipeline_who_fn *who)
{
    return pipeline_consumed(c, c->pipeline.base + rounds, who);
}

int pipeline_exit(struct coll *c, pipeline_who_fn *who)
{
    return pipeline_read(c, c->pipeline.total, who);
}

int pipeline_handed(struct coll *c, int side)
{
    int r = c->gpu.mover ? c->gpu.mover->mark(c, side) : DONE;
    return r < 0 ? r : DONE;
}

int pipeline_landed(struct coll *c, int side, uint64_t handed, uint64_t *landed)
{
    uint64_t now = handed, before = *landed;
    if (c->gpu.mover) {
        int r = c->gpu.mover->passed(c, side, &now);
        if (r < 0)
            return r;
    }
    *landed = now;
    return now > before ? DONE : WAITING;
}

int pipeline_waits(struct coll *c)
{
    bool copies = c->gpu.mover
        && (c->pipeline.asked > c->pipeline.in || c->pipeline.taking > c->pipeline.out);
    return copies ? watch_poll(&c->op) : WAITING;
}
