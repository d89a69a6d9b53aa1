/* Costs a look at each member's seat when a runner enters a collective, and at each own comm's journal per slice of a waiter. */
#include "order/deadlock.h"

#include "order/keys.h"
#include "os/futex.h"
#include "watch/journal.h"
#include "watch/verdict.h"

#include <stdio.h>

void deadlock_tell(const struct arena *arena, struct key *key)
{
    (void)arena;
    uint64_t state = load_acquire64(&key->state);                    /* E15 acquire */
    store_release32(&key->deadlocked, (uint32_t)(state >> 32) + 1);  /* E15 release */
    while (!swap_if64(&key->state, &state, state + (UINT64_C(1) << 15))) { }         /* E15 release: the version alone */
    futex_wake(low_half(&key->state), INT32_MAX);
}

static bool deadlock_waits(const struct watch *w, uint32_t p, const struct arena *arena, struct key *key, uint64_t seq)
{
    return load_acquire32(&w->seats[p]->waits_key) == (uint32_t)(key - arena->keys) + 1      /* E15 acquire */
        && load_acquire64(&watch_arrival(w, p, seq)->seq) < seq;                             /* E1 acquire */
}

bool deadlock_by_runner(struct tutti_comm *comm)
{
    struct watch *w = &comm->watch;
    const struct arena *arena = &comm->world->arena;
    struct keys *keys = comm->world->keys;
    bool found = false;
    pthread_mutex_lock(&comm->world->lock);
    for (size_t i = 0; i < keys->used; i++) {
        if (!keys->calls[i].running)
            continue;
        for (uint32_t p = 0; p < w->size; p++) {
            if (p == w->me || !deadlock_waits(w, p, arena, keys->calls[i].key, comm->seq + 1))
                continue;
            snprintf(w->mine->why, sizeof w->mine->why, "rank %u waits for key \"%.60s\", which this rank runs", p, keys->calls[i].key->text);
            deadlock_tell(arena, keys->calls[i].key);
            found = true;
            break;
        }
    }
    pthread_mutex_unlock(&comm->world->lock);
    if (found)
        verdict_quit(w, QUIT_DEADLOCK);
    return found;
}

/* Is p inside a collective of this comm that we have not begun? */
static bool deadlock_needs_us(struct tutti_comm *comm, uint32_t p)
{
    const struct watch *w = &comm->watch;
    const struct record *r = journal_hand(&w->members[p]);
    if (load_acquire64(&w->members[p].head) == 0 || load_relaxed64(&r->ended))       /* relaxed: a stable fact is looked for; the next slice looks again */
        return false;
    uint64_t seq = load_relaxed64(&r->seq);                          /* relaxed: as above */
    return kind_collective(stamp_kind(load_relaxed64(&r->descriptor))) && seq > comm->seq;   /* relaxed: as above */
}

bool deadlock_by_waiter(struct tutti_comm *comm, struct key *key, uint32_t runner_world)
{
    struct world *world = comm->world;
    struct tutti_comm *found = NULL;
    const struct seat *runner = &world->arena.seats[runner_world];
    pthread_mutex_lock(&world->lock);
    for (struct tutti_comm *c = world->comms; c && !found; c = c->next)
        for (uint32_t p = 0; p < c->watch.size && !found; p++)
            if (c->watch.seats[p] == runner && deadlock_needs_us(c, p))
                found = c;
    pthread_mutex_unlock(&world->lock);
    if (!found)
        return false;
    snprintf(found->watch.mine->why, sizeof found->watch.mine->why, "this rank waits for key \"%.60s\", whose runner is in here", key->text);
    deadlock_tell(&world->arena, key);
    verdict_quit(&found->watch, QUIT_DEADLOCK);
    return true;
}
