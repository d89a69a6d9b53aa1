/* Words only grow, over all operations of a comm, so nothing is reset between them. A peer is never asked for more than it must do anyway:
 * a licence waits for those who take in this operation, and, for slots last used by an earlier one, for everybody's return from that. */
#include "coll/ring.h"

int ring_stage(struct coll *c, bool needed, uint64_t rounds, size_t used)
{
    uint32_t size = c->comm->watch.size;
    c->ring.slot = ring_slot_now(c);
    c->ring.depth = ring_depth_now(c);
    c->ring.in = c->ring.asked = c->ring.fold = c->ring.taking = c->ring.out = c->ring.total = c->ring.mine = 0;
    c->ring.base = c->comm->coll.rounds;
    c->ring.at = NULL;                 /* one that this operation has no need of may be lent to another comm at any moment */
    if (needed || c->cma.may != CMA_NO) {  /* whether private memory is read where it lies is known after the gate */
        bool all = c->comm->coll.devices || c->gpu.mover;     /* the driver registers it whole */
        struct ring_need need = { ring_all_slots(c) + 2 * ring_rows_bytes(size), c->ring.slot, used, ring_depth_now(c),
                                  (uint32_t)(c->ring.base % ring_depth_now(c)), all ? RING_ANY : rounds };
        int r = comm_stage_ring(c->comm, &need);
        if (r < 0)
            return r;
        c->ring.at = c->comm->stage.ring;
    }
    coll_publish(c, c->ring.at);
    return 0;
}

void ring_begin(struct coll *c, uint64_t total)
{
    c->ring.total = total;
    c->comm->coll.rounds = c->ring.base + total;
}

void ring_close(struct coll *c)
{
    struct watch *w = &c->comm->watch;
    if (load_relaxed64(&w->mine->consumed) < c->ring.base + c->ring.total)           /* relaxed: our own word */
        watch_raise(w, &w->mine->consumed, c->ring.base + c->ring.total);            /* E18 release */
    if (c->comm->stage.ring_busy)
        comm_ring_leave(c->comm);
}

char *ring_slot(char *ring, const struct coll *c, uint64_t round)
{
    return ring + (c->ring.base + round) % c->ring.depth * c->ring.slot;
}

struct part_row *ring_rows(const struct coll *c, char *ring)
{
    uint32_t size = c->comm->watch.size;
    return (struct part_row *)(void *)(ring + ring_all_slots(c) + (c->op.claim.seq & 1) * ring_rows_bytes(size));
}

const struct part_row *ring_rows_of(const struct coll *c, uint32_t p)
{
    char *ring = coll_peer(c, p, ring_all_slots(c) + 2 * ring_rows_bytes(c->comm->watch.size));
    return ring ? ring_rows(c, ring) : NULL;
}

static void ring_publish(struct arrival *mine, int word, const struct place *place)
{
    store_relaxed64(&mine->more[word], place->lo < place->hi ? place->at : 0);       /* relaxed: E1 publishes it */
    store_relaxed64(&mine->more[word + 1], place->lo);                               /* relaxed: as above */
    store_relaxed64(&mine->more[word + 2], place->lo < place->hi ? place->hi : place->lo);   /* relaxed: as above */
}

void ring_publish_places(struct coll *c)
{
    struct arrival *mine = &c->comm->watch.mine->arrival[c->op.claim.seq & 1];
    ring_publish(mine, 0, &c->sends);
    ring_publish(mine, 3, &c->recvs);
}

static struct place ring_place(const struct coll *c, uint32_t p, int word)
{
    const struct arrival *a = watch_arrival(&c->comm->watch, p, c->op.claim.seq);
    /* relaxed: after E1 */
    return ring_known(c, (struct place){ load_relaxed64(&a->more[word]), load_relaxed64(&a->more[word + 1]), load_relaxed64(&a->more[word + 2]) });
}

struct place ring_send_place(const struct coll *c, uint32_t p) { return ring_place(c, p, 0); }
struct place ring_recv_place(const struct coll *c, uint32_t p) { return ring_place(c, p, 3); }

static shared64 *ring_word(const struct coll *c, uint32_t p, size_t at)
{
    return (shared64 *)(void *)((char *)&c->comm->watch.members[p] + at);
}

int ring_await(struct coll *c, size_t word_at, uint64_t rounds, ring_who_fn *who)
{
    struct watch *w = &c->comm->watch;
    for (uint32_t p = 0; p < w->size; p++) {
        if (p == w->me || (who && !who(c, p)))
            continue;
        shared64 *word = ring_word(c, p, word_at);
        if (load_acquire64(word) < c->ring.base + rounds) {          /* E16 acquire, E17 acquire */
            c->op.wait = wait_for(word, c->ring.base + rounds, p);
            return WAITING;
        }
    }
    return DONE;
}

static int ring_consumed(struct coll *c, uint64_t need, ring_who_fn *who)
{
    struct watch *w = &c->comm->watch;
    for (uint32_t p = 0; p < w->size; p++) {
        shared64 *word = &w->members[p].consumed;
        if (p == w->me || (who && !who(c, p)) || load_acquire64(word) >= need || watch_past(w, p, c->op.claim.seq))       /* E18 acquire */
            continue;
        c->op.wait = wait_for_or_gone(word, need, p);
        return WAITING;
    }
    return DONE;
}

int ring_licence(struct coll *c, uint64_t round, ring_who_fn *who)
{
    uint64_t now = c->ring.base + round;
    if (now < c->ring.depth)
        return DONE;
    uint64_t need = now - c->ring.depth + 1;
    return ring_consumed(c, need, need <= c->ring.base ? NULL : who);
}

int ring_exit(struct coll *c, ring_who_fn *who) { return ring_consumed(c, c->ring.base + c->ring.total, who); }

int ring_handed(struct coll *c, int side)
{
    int r = c->gpu.mover ? c->gpu.mover->mark(c, side) : DONE;
    return r < 0 ? r : DONE;
}

int ring_landed(struct coll *c, int side, uint64_t handed, uint64_t *landed)
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

int ring_waits(struct coll *c)
{
    bool copies = c->gpu.mover && (c->ring.asked > c->ring.in || c->ring.taking > c->ring.out);
    return copies ? watch_poll(&c->op) : WAITING;
}
