/* Costs a look at each member's seat when a runner enters a collective, and at each own comm's journal per slice of a waiter. */
#include "order/deadlock.h"

#include "order/keys.h"
#include "os/futex.h"
#include "watch/journal.h"
#include "watch/verdict.h"

#include <stdio.h>

static void deadlock_tell(struct key *key)
{
    fetch_add32(&key->deadlocked, 1);                                /* E15 release */
    uint64_t state = load_acquire64(&key->state);                    /* E15 acquire */
    while (!swap_if64(&key->state, &state, key_state_changed(state))) { }            /* E15 release */
    futex_wake(low_half(&key->state), INT32_MAX);
}

/* Neither arrived at operation seq nor on its way there. */
static bool deadlock_absent(const struct watch *w, uint32_t p, uint64_t seq)
{
    return load_acquire64(&w->members[p].queued) < seq                               /* E21 acquire */
        && load_acquire64(&watch_arrival(w, p, seq)->seq) < seq;                     /* E1 acquire */
}

static bool deadlock_waits(const struct watch *w, uint32_t p, uint32_t waited, uint64_t seq)
{
    return p != w->me && load_acquire32(&w->seats[p]->waits_key) == waited                                 /* E15 acquire */
        && deadlock_absent(w, p, seq);
}

static struct key *deadlock_key(struct tutti_comm *comm, uint64_t seq, uint32_t *who)
{
    const struct keys *keys = comm->world->keys;
    for (int i = 0; i < KEYS_BUCKETS; i++)
        for (const struct key_call *call = keys->bucket[i]; call; call = call->next)
            for (uint32_t p = 0; call->running && p < comm->watch.size; p++)
                if (deadlock_waits(&comm->watch, p, key_waited(&comm->world->arena, call->key, call->round), seq)) {
                    *who = p;
                    return call->key;
                }
    return NULL;
}

bool deadlock_by_runner(struct tutti_comm *comm, uint64_t seq)
{
    struct watch *w = &comm->watch;
    uint32_t who;
    if (load_acquire32(&w->mine->quit) & QUIT_DEADLOCK)              /* E7 acquire */
        return true;
    pthread_mutex_lock(&comm->world->lock);
    struct key *key = deadlock_key(comm, seq, &who);
    pthread_mutex_unlock(&comm->world->lock);
    if (!key)
        return false;
    snprintf(w->mine->why, sizeof w->mine->why, "rank %u waits for key \"%.60s\", which this rank runs", who, key->text);
    verdict_quit(w, QUIT_DEADLOCK);
    deadlock_tell(key);
    return true;
}

/* Does p sit in a collective of this comm that we have not begun? What it left under way as work does not count: it goes on by itself. */
static bool deadlock_needs_us(const struct watch *w, uint32_t p)
{
    const struct member *m = &w->members[p];
    uint64_t head = load_acquire64(&m->head);
    const struct record *r = &m->journal[head % JOURNAL_RECORDS];
    if (head == 0 || load_relaxed64(&r->ended))                      /* relaxed: a stable fact is looked for; the next slice looks again */
        return false;
    uint64_t seq = load_relaxed64(&r->seq);                          /* relaxed: as above */
    return kind_collective(stamp_kind(load_relaxed64(&r->descriptor)))               /* relaxed: as above */
        && load_acquire64(&m->queued) < seq && deadlock_absent(w, w->me, seq);       /* E21 acquire */
}

/* The runner may have ended the key between our load of its state and its collective: it is running there only if the state is still the same. */
bool deadlock_by_waiter(struct tutti_comm *comm, struct key *key, uint64_t state, uint32_t runner_world)
{
    struct world *world = comm->world;
    struct tutti_comm *found = NULL;
    const struct seat *runner = &world->arena.seats[runner_world];
    pthread_mutex_lock(&world->lock);
    for (struct tutti_comm *c = world->comms; c && !found; c = c->next)
        for (uint32_t p = 0; p < c->watch.size && !found; p++)
            if (c->watch.seats[p] == runner && deadlock_needs_us(&c->watch, p))
                found = c;
    pthread_mutex_unlock(&world->lock);
    if (!found || load_acquire64(&key->state) != state)              /* E15 acquire */
        return false;
    snprintf(found->watch.mine->why, sizeof found->watch.mine->why, "this rank waits for key \"%.60s\", whose runner is in here", key->text);
    verdict_quit(&found->watch, QUIT_DEADLOCK);
    deadlock_tell(key);
    return true;
}

void deadlock_met(struct world *world)
{
    pthread_mutex_lock(&world->lock);
    for (struct tutti_comm *c = world->comms; c; c = c->next)
        for (uint32_t p = 0; p < c->watch.size; p++)
            if (load_acquire32(&c->watch.members[p].quit) & QUIT_DEADLOCK)           /* E7 acquire */
                fetch_or32(&c->watch.attention, ATTENTION_BROKEN);
    pthread_mutex_unlock(&world->lock);
}
