/* Staging is the main cost of a comm in memory. A comm gets as much as its operations need. Pages
 * are touched when they are needed or earned, never all at once unless TUTTI_AHEAD says so.
 * Pipelines are large, and alike for all comms of a size. So a rank with some of them takes one
 * over from another comm: one that no operation is in, and that all peers have read to the end. A
 * pipeline of a comm with devices stays: it may be registered with the driver.
 * Cost: two uncontended locks for an operation through pipelines. */
#include "group/comm.h"

#include "base/clock.h"
#include "os/cpu.h"
#include "os/memory.h"
#include "watch/death.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { PIPELINES_KEPT = 4, EAGER_LEAST = 4096, EAGER_STEP = 4, EAGER_ALIGN = 64, PAGE = 4096 };
/* Staging of a comm that is closed here while peers may still read the last operation out of it. */
struct drain { struct slot *slot; uint64_t birth, rounds; struct stage stage; struct drain *next; };

enum { DRAIN_PATIENCE_NS = 1000000000 };

/* True: p reads no more of our staging on this slot's comm: it has freed the comm, or is gone. */
static bool reader_gone(const struct world *world, struct slot *slot, uint32_t p)
{
    uint32_t rank = arena_slot_rank(&world->arena, slot, p);
    /* E7 acquire */
    return rank == (uint32_t)world->rank || rank == RANK_NOBODY
        || death_of(&world->arena.seats[rank]) != GONE_NO
        || (load_acquire32(&arena_member(slot, p)->quit) & (QUIT_FREED | QUIT_LEFT));
}

/* True: all have read our pipeline up to that round. False also if the number of members was
 * written over: then the pipeline is kept. */
static bool pipeline_read(const struct world *world, struct slot *slot, uint64_t rounds)
{
    uint32_t size = arena_slot_size(&world->arena, slot);
    for (uint32_t p = 0; p < size; p++)
        /* E18 acquire */
        if (!reader_gone(world, slot, p)
            && load_acquire64(&arena_member(slot, p)->consumed) < rounds)
            return false;
    return size > 0;
}

/* True: no peer can read it any more. The same is true if the slot was made anew. */
static bool drain_over(const struct world *world, const struct drain *d)
{
    if (d->slot->birth != d->birth)
        return true;
    bool eager = d->stage.eager[0] || d->stage.eager[1] || d->stage.ring || d->stage.held;
    uint32_t size = arena_slot_size(&world->arena, d->slot);
    for (uint32_t p = 0; eager && p < size; p++)
        if (!reader_gone(world, d->slot, p))
            return false;
    return pipeline_read(world, d->slot, d->rounds);
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

/* Frees the staging that no peer reads any more. Takes the arena's lock: slots are made anew under
 * it. */
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
        stage_give(world, d->stage.eager[0]);
        stage_give(world, d->stage.eager[1]);
        stage_give(world, d->stage.ring);
        stage_give(world, d->stage.pipeline);
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
    struct stage *stage = &comm->stage;
    struct drain *d = stage->eager[0] || stage->eager[1] || stage->ring || stage->pipeline
            || stage->held
        ? malloc(sizeof *d)
        : NULL;
    if (!d) {
        held_free(stage->held);    /* no memory to note it: lost until the world is closed */
        return;
    }
    *d = (struct drain){ comm->watch.slot, comm->birth, comm->coll.rounds, *stage, world->drains };
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

int comm_touch(void *at, size_t bytes, struct fresh *f)
{
    uint64_t began = clock_tick();
    if (memory_populate(at, bytes) < 0)
        return -ENOMEM;
    fresh_learn(f, clock_tick() - began, layout_round(bytes, PAGE) / PAGE);
    return 0;
}

/* Under the world's lock. What is full may be so by what a dead rank seems to read still. */
static char *stage_take(struct world *world, size_t bytes, bool bare, int *error)
{
    for (bool asked = false;; asked = true) {
        drain_sweep(world);
        char *at = bare ? span_reserve(world->span, bytes, SPAN_STAGING, error)
                        : span_take(world->span, bytes, error);
        if (at || asked || *error != -ENOSPC || !world->drains
            || !death_seek(&world->whole->watch))
            return at;
    }
}

static void *held_take(struct tutti_comm *comm, size_t bytes, bool bare, int *error)
{
    struct held *held = malloc(sizeof *held);
    struct world *world = comm->world;
    *error = -ENOMEM;
    if (!held)
        return NULL;
    pthread_mutex_lock(&world->lock);
    held->at = stage_take(world, bytes, bare, error);
    pthread_mutex_unlock(&world->lock);
    void *at = held->at;
    if (!at) {
        free(held);
        return NULL;
    }
    held->next = comm->stage.held;
    comm->stage.held = held;
    return at;
}

void *comm_hold(struct tutti_comm *comm, size_t bytes, int *error)
{
    return held_take(comm, bytes, false, error);
}

void *comm_hold_bare(struct tutti_comm *comm, size_t bytes, int *error)
{
    return held_take(comm, bytes, true, error);
}

void comm_hold_end(struct tutti_comm *comm, void *at)
{
    struct held **link = &comm->stage.held;
    while ((*link)->at != at)
        link = &(*link)->next;
    struct held *held = *link;
    *link = held->next;
    pthread_mutex_lock(&comm->world->lock);
    span_give(comm->world->span, at);
    pthread_mutex_unlock(&comm->world->lock);
    free(held);
}

static int stage_explain(struct tutti_comm *comm, size_t bytes, int error)
{
    comm_explain(comm, "no memory for %zu bytes of staging in the arena: %s", bytes,
                 error == -ENOSPC ? "the span is full; raise TUTTI_SPAN_BYTES"
                                  : "the system has no pages left (RAM or cgroup limit)");
    return error;
}

/* Gives the parity's block `bytes` with pages, by a new block if its room is less than `room`. 0,
 * or -errno with the block unchanged. */
static int eager_fit(struct tutti_comm *comm, int parity, size_t room, size_t bytes)
{
    struct world *world = comm->world;
    struct stage *stage = &comm->stage;
    bool anew = room > stage->eager_room[parity];
    size_t had = anew ? 0 : stage->eager_bytes[parity], more = layout_round(bytes, PAGE) - had;
    char *got = stage->eager[parity];
    int error = 0;
    if (anew) {
        pthread_mutex_lock(&world->lock);
        got = stage_take(world, room, true, &error);
        pthread_mutex_unlock(&world->lock);
    }
    if (got)
        error = comm_touch(got + had, more, &stage->fresh);
    if (anew && got) {
        pthread_mutex_lock(&world->lock);
        stage_give(world, error ? got : stage->eager[parity]);
        pthread_mutex_unlock(&world->lock);
    }
    if (error)
        return error;
    stage->eager[parity] = got;
    stage->eager_room[parity] = anew ? room : stage->eager_room[parity];
    stage->eager_bytes[parity] = had + more;
    return 0;
}

/* No peer reads this parity's block: operation seq - 2 was the last one in it. */
static void eager_drop(struct tutti_comm *comm, int parity)
{
    struct stage *stage = &comm->stage;
    pthread_mutex_lock(&comm->world->lock);
    stage_give(comm->world, stage->eager[parity]);
    pthread_mutex_unlock(&comm->world->lock);
    stage->eager[parity] = NULL;
    stage->eager_room[parity] = stage->eager_bytes[parity] = 0;
}

size_t comm_ring_room(size_t second)
{
    size_t room = second / (EAGER_CHUNK / 2) * EAGER_CHUNK;
    return !second || room > EAGER_MOST ? EAGER_MOST : room < EAGER_ENOUGH ? EAGER_ENOUGH : room;
}

static char *ring_reserve(struct world *world)
{
    int error;
    pthread_mutex_lock(&world->lock);
    char *ring = stage_take(world, EAGER_MOST, true, &error);
    pthread_mutex_unlock(&world->lock);
    return ring;
}

/* Touches so many bytes more, or what it lacks. False: there is no memory, and the ring stays as it
 * is. */
static bool ring_grow(struct tutti_comm *comm, size_t bytes)
{
    struct stage *stage = &comm->stage;
    if (!stage->ring && (stage->ring = ring_reserve(comm->world)))
        stage->ring_room = comm_ring_room(cpu_cache_bytes(2));
    size_t lacks = stage->ring_room - stage->ring_bytes;
    bytes = bytes < lacks ? bytes : lacks;
    if (!stage->ring
        || comm_touch(stage->ring + stage->ring_bytes, bytes, &stage->fresh) < 0) {
        fresh_refused(&stage->fresh, EAGER_MOST / PAGE);
        return false;
    }
    stage->ring_bytes += bytes;
    return true;
}

/* True: few comms have theirs whole by TUTTI_AHEAD, so this one may. */
static bool ring_ahead(struct tutti_comm *comm)
{
    int held = 0;
    pthread_mutex_lock(&comm->world->lock);
    for (const struct tutti_comm *c = comm->world->comms; c; c = c->next)
        held += c->stage.ahead;
    comm->stage.ahead = held < AHEAD_MOST;
    pthread_mutex_unlock(&comm->world->lock);
    return comm->stage.ahead;
}

_Static_assert(EAGER_ENOUGH >= 4 * EAGER_LARGEST && EAGER_MOST % EAGER_CHUNK == 0,
               "a slot is apart from the one before it, also where the ring begins again");

enum { RING_SOON = 8 };      /* slots, after which one that may be soon is written again */

/* soon: the ring begins again after a few slots, where the one before it is not in the way. */
static char *ring_slot(struct stage *stage, size_t bytes, size_t used, bool soon)
{
    size_t end = stage->ring_at + bytes;
    if (end > stage->ring_bytes || (soon && end > RING_SOON * bytes && stage->ring_last >= bytes))
        stage->ring_at = 0;
    stage->ring_last = stage->ring_at;
    char *slot = stage->ring + stage->ring_at;
    stage->ring_at += layout_round(used, EAGER_ALIGN);
    return slot;
}

static bool takes_turns(size_t bytes) { return bytes >= EAGER_TURNS && bytes <= EAGER_LARGEST; }

void comm_stage_earn(struct tutti_comm *comm, size_t bytes)
{
    struct stage *stage = &comm->stage;
    if (!takes_turns(bytes) || comm_stage_paid(comm))
        return;
    fresh_earn(&stage->fresh, comm_earns(comm, bytes));
    if (comm->world->flags & TUTTI_AHEAD && !stage->asked && bytes >= EAGER_CHUNK) {
        stage->asked = true;
        if (ring_ahead(comm))
            ring_grow(comm, EAGER_MOST);
    } else if (!comm_ring_whole(stage) && fresh_may(&stage->fresh, EAGER_CHUNK / PAGE)
               && ring_grow(comm, EAGER_CHUNK))
        fresh_pay(&stage->fresh, EAGER_CHUNK / PAGE);
}

/* Without it each 64 KiB of the first time round cost a fault: broadcast of 16 KiB took 2.8 us in
 * place of 2.0. A ring begins where 2 MiB do, if its span has such a place. */
void comm_stage_look(struct tutti_comm *comm, const char *slot)
{
    const struct arena *arena = &comm->world->arena;
    uint64_t at = (uint64_t)(slot - arena->base) / EAGER_MOST * EAGER_MOST;
    comm->stage.looked = true;
    memory_look(arena->base + at, arena->bytes - at < EAGER_MOST ? arena->bytes - at : EAGER_MOST);
}

int comm_stage_eager(struct tutti_comm *comm, uint64_t seq, size_t bytes, size_t used, bool soon,
                     char **slot)
{
    struct stage *stage = &comm->stage;
    int parity = seq & 1;
    bool turns = takes_turns(bytes);
    comm_stage_earn(comm, bytes);
    if (turns && stage->ring_bytes >= EAGER_ENOUGH) {
        if (stage->eager_room[parity] > EAGER_TURNS)
            eager_drop(comm, parity);
        *slot = ring_slot(stage, bytes, used, soon);
        return 0;
    }
    size_t room = EAGER_LEAST;
    while (room < bytes)
        room *= EAGER_STEP;
    int r = stage->eager_bytes[parity] < bytes ? eager_fit(comm, parity, room, bytes) : 0;
    if (r < 0)
        return stage_explain(comm, room, r);
    *slot = stage->eager[parity];
    return 0;
}

/* The comm with the idle pipeline that was used longest ago. NULL: there is none, or there are few
 * pipelines, so a new one may be made. */
static struct tutti_comm *pipeline_spare(struct world *world)
{
    struct tutti_comm *oldest = NULL;
    int held = 0;
    for (struct tutti_comm *c = world->comms; c; c = c->next) {
        const struct stage *stage = &c->stage;
        held += stage->pipeline != NULL;
        if (stage->pipeline && !stage->pipeline_busy && !c->coll.devices
            && (!oldest || stage->pipeline_used < oldest->stage.pipeline_used)
            && pipeline_read(world, c->watch.slot, stage->pipeline_rounds))
            oldest = c;
    }
    return held >= PIPELINES_KEPT ? oldest : NULL;
}

static int pipeline_find(struct tutti_comm *comm, const struct pipeline_need *need)
{
    struct world *world = comm->world;
    struct stage *stage = &comm->stage;
    int error = 0;
    drain_sweep(world);
    /* Too small since the comm has devices. The operation that brought them has ended, and a rank
     * ends such an operation when it has read all it needs (E70). */
    if (stage->pipeline && pipeline_read(world, comm->watch.slot, comm->coll.rounds))
        stage_give(world, stage->pipeline);
    stage->pipeline = NULL;
    struct tutti_comm *lender = pipeline_spare(world);
    struct stage *from = lender ? &lender->stage : NULL;
    if (from && from->pipeline_bytes >= need->bytes) {
        stage->pipeline = from->pipeline;
        stage->pipeline_bytes = from->pipeline_bytes;
        stage->pipeline_slot = from->pipeline_slot;
        stage->pipeline_whole = from->pipeline_whole;
        memcpy(stage->pipeline_there, from->pipeline_there, sizeof stage->pipeline_there);
    } else {                            /* none, or too small: takes a new one */
        stage_give(world, from ? from->pipeline : NULL);
        stage->pipeline = span_reserve(world->span, need->bytes, SPAN_STAGING, &error);
        stage->pipeline_bytes = need->bytes;
        stage->pipeline_slot = 0;
        stage->pipeline_whole = false;
    }
    if (from)
        from->pipeline = NULL;
    return error;
}

static int pipeline_touch(struct stage *stage, const struct pipeline_need *need)
{
    if (stage->pipeline_whole)
        return 0;
    if (need->rounds == UINT64_MAX) {
        stage->pipeline_whole = memory_populate(stage->pipeline, stage->pipeline_bytes) == 0;
        return stage->pipeline_whole ? 0 : -ENOMEM;
    }
    if (stage->pipeline_slot != need->slot) { /* was another comm's: pages there cost little */
        memset(stage->pipeline_there, 0, sizeof stage->pipeline_there);
        stage->pipeline_slot = need->slot;
    }
    for (uint32_t i = 0; i < need->rounds && i < need->depth; i++) {
        uint32_t *there = &stage->pipeline_there[(need->first + i) % need->depth];
        char *slot = stage->pipeline + (need->first + i) % need->depth * need->slot;
        if (*there >= need->used)
            continue;
        if (memory_populate(slot + *there, need->used - *there) < 0)
            return -ENOMEM;
        *there = (uint32_t)need->used;
    }
    return 0;
}

/* Pages may be touched late: no peer has read slots without pages. Without memory the pipeline is
 * as free as before. */
int comm_stage_pipeline(struct tutti_comm *comm, const struct pipeline_need *need)
{
    struct world *world = comm->world;
    struct stage *stage = &comm->stage;
    pthread_mutex_lock(&world->lock);
    int r = stage->pipeline && stage->pipeline_bytes >= need->bytes ? 0 : pipeline_find(comm, need);
    if (r == -ENOSPC && death_seek(&world->whole->watch))
        r = pipeline_find(comm, need);
    stage->pipeline_busy = r == 0;
    pthread_mutex_unlock(&world->lock);
    if (r == 0 && (r = pipeline_touch(stage, need)) < 0) {
        pthread_mutex_lock(&world->lock);
        stage->pipeline_busy = false;
        pthread_mutex_unlock(&world->lock);
    }
    return r < 0 ? stage_explain(comm, need->bytes, r) : 0;
}

void comm_pipeline_leave(struct tutti_comm *comm)
{
    struct world *world = comm->world;
    pthread_mutex_lock(&world->lock);
    comm->stage.pipeline_busy = false;
    comm->stage.pipeline_rounds = comm->coll.rounds;
    comm->stage.pipeline_used = ++world->pipelines_used;
    pthread_mutex_unlock(&world->lock);
}

void comm_pipeline_lose(struct tutti_comm *comm)
{
    struct world *world = comm->world;
    pthread_mutex_lock(&world->lock);
    comm->stage.pipeline = NULL;
    comm->stage.pipeline_bytes = 0;
    pthread_mutex_unlock(&world->lock);
}
