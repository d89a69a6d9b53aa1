/* Staging is what makes comms cost: so a comm has as much of it as goes through it. Flat blocks grow in steps of four, to what one slot
 * needs, and further while many go through. Rings are large and the same for all comms of a size, so a rank that has some takes one over
 * from a comm that does not need it now, instead of a new one: one that no operation is in, and out of which every peer has read all; not
 * that of a comm with devices, which may be registered with their driver. Costs two uncontended locks for an operation through rings. */
#include "group/comm.h"

#include "watch/death.h"

#include <errno.h>
#include <stdlib.h>

enum { RINGS_KEPT = 4, FLAT_LEAST = 4096, FLAT_STEP = 4, FLAT_BUSY = 8, FLAT_ALIGN = 64 };

/* Staging of a comm that is closed here while peers may still read the last operation out of it. */
struct drain { struct slot *slot; uint64_t birth, rounds; struct stage stage; struct drain *next; };

enum { DRAIN_PATIENCE_NS = 1000000000 };

/* Will p read nothing more of what we staged on the comm of this slot? It has freed the comm or is gone. */
static bool reader_gone(const struct world *world, struct slot *slot, uint32_t p)
{
    uint32_t rank = arena_slot_rank(&world->arena, slot, p);
    return rank == (uint32_t)world->rank || rank == RANK_NOBODY || death_of(&world->arena.seats[rank]) != GONE_NO
        || (load_acquire32(&arena_member(slot, p)->quit) & (QUIT_FREED | QUIT_LEFT));        /* E7 acquire */
}

/* Has everybody read our ring to the end of that round? Nobody knows where somebody wrote over the number of members: it stays. */
static bool ring_read(const struct world *world, struct slot *slot, uint64_t rounds)
{
    uint32_t size = arena_slot_size(&world->arena, slot);
    for (uint32_t p = 0; p < size; p++)
        if (!reader_gone(world, slot, p) && load_acquire64(&arena_member(slot, p)->consumed) < rounds)       /* E18 acquire */
            return false;
    return size > 0;
}

/* Over when nobody can read it any more; or when the slot was made anew, which means the same. */
static bool drain_over(const struct world *world, const struct drain *d)
{
    if (d->slot->birth != d->birth)
        return true;
    bool flat = d->stage.flat[0] || d->stage.flat[1] || d->stage.held;
    uint32_t size = arena_slot_size(&world->arena, d->slot);
    for (uint32_t p = 0; flat && p < size; p++)
        if (!reader_gone(world, d->slot, p))
            return false;
    return ring_read(world, d->slot, d->rounds);
}

static void stage_give(struct world *world, char *at)
{
    if (at)
        span_give(world->span, at);
}

static void held_free(struct held *held)
{
    while (held) {
        struct held *next = held->next;
        free(held);
        held = next;
    }
}

/* Under the arena's lock: slots are made anew under it. */
static void drain_sweep(struct world *world)
{
    if (!world->drains || arena_lock(&world->arena, DRAIN_PATIENCE_NS) < 0)
        return;
    for (struct drain **at = &world->drains; *at;) {
        struct drain *d = *at;
        if (!drain_over(world, d)) {
            at = &d->next;
            continue;
        }
        *at = d->next;
        stage_give(world, d->stage.flat[0]);
        stage_give(world, d->stage.flat[1]);
        stage_give(world, d->stage.ring);
        for (struct held *h = d->stage.held; h; h = h->next)
            span_give(world->span, h->at);
        held_free(d->stage.held);
        free(d);
    }
    arena_unlock(&world->arena);
}

void stage_close(struct tutti_comm *comm)
{
    struct world *world = comm->world;
    const struct stage *stage = &comm->stage;
    struct drain *d = stage->flat[0] || stage->flat[1] || stage->ring || stage->held ? malloc(sizeof *d) : NULL;
    if (!d) {
        held_free(stage->held);                      /* no memory to remember it by: lost until the world is closed */
        return;
    }
    *d = (struct drain){ comm->watch.slot, comm->birth, comm->rounds, *stage, world->drains };
    world->drains = d;
}

void comm_close_world(struct world *world)
{
    while (world->drains) {
        struct drain *d = world->drains;
        world->drains = d->next;
        held_free(d->stage.held);
        free(d);
    }
}

void *comm_hold(struct tutti_comm *comm, size_t bytes, int *error)
{
    struct held *held = malloc(sizeof *held);
    *error = -ENOMEM;
    if (!held)
        return NULL;
    pthread_mutex_lock(&comm->world->lock);
    drain_sweep(comm->world);
    held->at = span_take(comm->world->span, bytes, error);
    pthread_mutex_unlock(&comm->world->lock);
    void *at = held->at;
    if (!at) {
        free(held);
        return NULL;
    }
    held->next = comm->stage.held;
    comm->stage.held = held;
    return at;
}

static int stage_explain(struct tutti_comm *comm, size_t bytes, int error)
{
    comm_explain(comm, "no memory for %zu bytes of staging in the arena: %s", bytes,
                 error == -ENOSPC ? "the span is full; raise TUTTI_SPAN_BYTES" : "the system has no pages left (RAM or cgroup limit)");
    return error;
}

/* In place of the parity's block. 0 or -errno: then the old one is still there. */
static int flat_grow(struct tutti_comm *comm, int parity, size_t room)
{
    struct world *world = comm->world;
    struct stage *stage = &comm->stage;
    int error = 0;
    pthread_mutex_lock(&world->lock);
    drain_sweep(world);
    char *got = span_take(world->span, room, &error);
    if (got) {
        stage_give(world, stage->flat[parity]);
        stage->flat[parity] = got;
        stage->flat_bytes[parity] = room;
    }
    pthread_mutex_unlock(&world->lock);
    stage->flat_passed[parity] = 0;
    return got ? 0 : error;
}

int comm_stage_flat(struct tutti_comm *comm, uint64_t seq, size_t bytes, char **slot)
{
    struct stage *stage = &comm->stage;
    int parity = seq & 1;
    size_t room = FLAT_LEAST, *at = &stage->flat_at[parity];
    while (room < bytes)
        room *= FLAT_STEP;
    int r = stage->flat_bytes[parity] < bytes ? flat_grow(comm, parity, room) : 0;
    if (r < 0)
        return stage_explain(comm, room, r);
    stage->flat_passed[parity] += bytes;
    if (stage->flat_passed[parity] > FLAT_BUSY * stage->flat_bytes[parity] && stage->flat_bytes[parity] < FLAT_MOST)
        flat_grow(comm, parity, FLAT_STEP * stage->flat_bytes[parity]);      /* if it cannot, it goes on as it was */
    if (*at + bytes > stage->flat_bytes[parity])
        *at = 0;
    *slot = stage->flat[parity] + *at;
    *at += layout_round(bytes, FLAT_ALIGN);
    return 0;
}

/* Of the rings that nobody needs now, the one that was used longest ago. NULL if there are few rings: then another one may stay. */
static struct tutti_comm *ring_spare(struct world *world)
{
    struct tutti_comm *oldest = NULL;
    int held = 0;
    for (struct tutti_comm *c = world->comms; c; c = c->next) {
        const struct stage *stage = &c->stage;
        held += stage->ring != NULL;
        if (stage->ring && !stage->ring_busy && !c->devices && (!oldest || stage->ring_used < oldest->stage.ring_used)
            && ring_read(world, c->watch.slot, stage->ring_rounds))
            oldest = c;
    }
    return held >= RINGS_KEPT ? oldest : NULL;
}

static int ring_find(struct tutti_comm *comm, size_t bytes)
{
    struct world *world = comm->world;
    struct stage *stage = &comm->stage;
    int error = 0;
    drain_sweep(world);
    /* Too small since the comm has devices: the operation that said so has ended, and whoever ends such has read all it needs (E70). */
    if (stage->ring && ring_read(world, comm->watch.slot, comm->rounds))
        stage_give(world, stage->ring);
    stage->ring = NULL;
    struct tutti_comm *lender = ring_spare(world);
    char *spare = lender ? lender->stage.ring : NULL;
    size_t room = lender ? lender->stage.ring_bytes : 0;
    if (lender)
        lender->stage.ring = NULL;
    if (room < bytes) {                              /* of a smaller comm: its memory may do for the next such */
        stage_give(world, spare);
        spare = span_take(world->span, bytes, &error);
        room = bytes;
    }
    stage->ring = spare;
    stage->ring_bytes = room;
    return error;
}

int comm_stage_ring(struct tutti_comm *comm, size_t bytes)
{
    struct world *world = comm->world;
    struct stage *stage = &comm->stage;
    pthread_mutex_lock(&world->lock);
    int r = stage->ring && stage->ring_bytes >= bytes ? 0 : ring_find(comm, bytes);
    stage->ring_busy = r == 0;
    pthread_mutex_unlock(&world->lock);
    return r < 0 ? stage_explain(comm, bytes, r) : 0;
}

void comm_ring_leave(struct tutti_comm *comm)
{
    struct world *world = comm->world;
    pthread_mutex_lock(&world->lock);
    comm->stage.ring_busy = false;
    comm->stage.ring_rounds = comm->rounds;
    comm->stage.ring_used = ++world->rings_used;
    pthread_mutex_unlock(&world->lock);
}

void comm_ring_lose(struct tutti_comm *comm)
{
    struct world *world = comm->world;
    pthread_mutex_lock(&world->lock);
    comm->stage.ring = NULL;
    comm->stage.ring_bytes = 0;
    pthread_mutex_unlock(&world->lock);
}
