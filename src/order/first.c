/* once and first, by the protocol in order.h.
 * Cost without a wait: a look-up, a load and at most one CAS. */
#include "order/order.h"

#include "base/clock.h"
#include "order/keys.h"
#include "group/timed_wait.h"
#include "watch/journal.h"
#include "watch/rollcall.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The state's fields: keys.h. */
static bool state_running(uint64_t s) { return s & 1; }
static uint32_t state_runner(uint64_t s) { return (uint32_t)(s >> 1) & 0x3fff; }
static uint64_t state_idle(uint64_t s) { return key_state_changed(s) & ~UINT64_C(0x7fff); }

static uint64_t state_run_by(uint64_t s, uint32_t rank)
{
    return state_idle(s) | (uint64_t)rank << 1 | 1;
}

int order_open(struct world *world)
{
    world->keys = calloc(1, sizeof(struct keys));
    return world->keys ? 0 : -ENOMEM;
}

void order_close(struct world *world)
{
    struct keys *keys = world->keys;
    for (int i = 0; keys && i < KEYS_BUCKETS; i++)
        for (struct key_call *call = keys->bucket[i], *next; call; call = next) {
            next = call->next;
            free(call);
        }
    free(keys);
    world->keys = NULL;
}

void order_forget(struct tutti_comm *comm)
{
    struct world *world = comm->world;
    struct keys *keys = world->keys;
    pthread_mutex_lock(&world->lock);
    for (int i = 0; i < KEYS_BUCKETS; i++)
        for (struct key_call **at = &keys->bucket[i]; *at;) {
            struct key_call *call = *at;
            if (call->birth != comm->birth) {
                at = &call->next;
                continue;
            }
            *at = call->next;
            free(call);
        }
    pthread_mutex_unlock(&world->lock);
}

static int first_late(struct tutti_comm *comm, struct key *key, uint32_t runner,
                      const struct timed_wait *p)
{
    char room[REPORT_TEXT];
    struct text t = TEXT_IN(room);
    text_clear(&t);
    text_add(&t, "the deadline of ");
    text_add_duration(&t, (uint64_t)p->timeout_ns);
    text_add(&t, " passed while waiting for key \"%.255s\", which rank %u runs: ", key->text,
             runner);
    rollcall_rank(&t, &comm->watch, runner);
    text_add(&t, "\n");
    comm_show(comm, &t);
    return -ETIMEDOUT;
}

/* Sleeps while `state` says that another living rank runs it. 0: look again. */
static int first_sleep(struct tutti_comm *comm, struct key *key, uint64_t state,
                       struct timed_wait *p)
{
    struct seat *me = &comm->world->arena.seats[comm->world->rank];
    uint32_t runner = state_runner(state);
    store_release32(&me->waits_key, (uint32_t)(key - comm->world->arena.keys) + 1);
    char what[KEY_TEXT + 16];
    snprintf(what, sizeof what, "for key \"%.255s\"", key->text);
    int r = timed_wait_sleep(p, &key->state, state, &key->sleepers, runner, what);
    store_release32(&me->waits_key, 0);
    return r == -ETIMEDOUT && !p->broken ? first_late(comm, key, runner, p) : r;
}

static void first_change(struct tutti_comm *comm, struct key *key)
{
    uint64_t state = load_acquire64(&key->state);                    /* E15 acquire */
    while (!swap_if64(&key->state, &state, state_idle(state))) { }   /* E15 release */
    if (load_acquire32(&key->sleepers))
        comm->watch.ways->wake(comm->watch.ways->arg, low_half(&key->state), INT32_MAX);
}

/* Returns as first_await. The last runner may have died between rounds and state: then the round is
 * done. */
static int first_taken(struct tutti_comm *comm, struct key *key, uint64_t n)
{
    if (load_acquire64(&key->rounds) < n)                            /* E15 acquire */
        return 1;
    first_change(comm, key);
    return 0;
}

static int first_await(struct tutti_comm *comm, struct key *key, uint64_t n, struct timed_wait *p)
{
    struct watch *w = &comm->watch;
    struct wait_ends ends = { &w->slot->verdict, &w->slot->news };
    for (;;) {
        uint64_t state = load_acquire64(&key->state);                /* E15 acquire */
        uint32_t runner = state_runner(state);
        /* E15 acquire: after the state, which it belongs to */
        if (load_acquire64(&key->rounds) >= n)
            return 0;
        if (state_running(state) && runner == w->me) {
            comm_explain(comm,
                         "first_begin of key \"%.255s\" twice: this rank runs it already; call "
                         "first_end before",
                         key->text);
            return -EDEADLK;
        }
        if (state_running(state) && runner < w->size && !timed_wait_gone(p, runner)) {
            if (p->slices == 0 && wait_spin(&key->state, state + 1, ends, &w->budget, w->ways))
                continue;
            int r = first_sleep(comm, key, state, p);
            if (r < 0)
                return r;
            continue;
        }
        int r = timed_wait_check(p, runner < w->size ? (int)runner : 0, "for a key");
        if (r < 0)
            return r;
        if (swap_if64(&key->state, &state, state_run_by(state, w->me)))      /* E15 release */
            return first_taken(comm, key, n);
    }
}

/* 1: this rank runs round n of the key. 0: it is done. */
static int first_enter(struct tutti_comm *comm, enum kind kind, uint32_t site, struct key *key,
                       uint64_t n, int64_t timeout_ns)
{
    struct timed_wait p = timed_wait_begin(comm, timeout_ns);
    p.kind = kind;
    p.site = site;
    int r = first_await(comm, key, n, &p);
    timed_wait_moved(&p);
    return r;
}

/* Ends the round. done: its number; 0: it failed, and is still to be done. */
static void first_finish(struct tutti_comm *comm, struct key *key, uint64_t done)
{
    if (done)
        store_release64(&key->rounds, done);                         /* E15 release */
    first_change(comm, key);
}

static struct key_call *first_books(struct tutti_comm *comm, enum kind kind, const char *name,
                                    bool add, int *error)
{
    struct key_call *call = keys_find(comm, kind, name, add, error);
    if (!call && *error == -EMSGSIZE)
        comm_explain(comm, "a key of %zu bytes; the most is %d", strlen(name), KEY_TEXT - 1);
    else if (!call && *error)
        comm_explain(comm,
                     "no room for key \"%.60s\": %d keys are in use; free comms that had some",
                     name, KEYS_MAX);
    return call;
}

/* False: with work under way the journal belongs to the thread of the work; this call is not in
 * it. */
static bool first_journal(struct tutti_comm *comm, enum kind kind, uint32_t site)
{
    if (load_acquire32(&comm->watch.attention) & ATTENTION_WORK)
        return false;
    journal_begin(&comm->watch, 0, fingerprint_make(kind, 0, 0, 0, 0), 0, site, clock_tick());
    return true;
}

static int first_return(struct tutti_comm *comm, bool journal, int result)
{
    if (journal)
        journal_end(&comm->watch, result < 0 ? result : 0, clock_tick());
    return result;
}

int order_once(struct tutti_comm *comm, uint32_t site, const char *name, int (*fn)(void *arg),
               void *arg, int64_t timeout_ns)
{
    int r;
    struct key_call *call = first_books(comm, KIND_ONCE, name, true, &r);
    if (!call)
        return r;
    struct key *key = call->key;
    bool journal = first_journal(comm, KIND_ONCE, site);
    r = first_enter(comm, KIND_ONCE, site, key, 1, timeout_ns);
    if (r != 1)
        return first_return(comm, journal, r);
    call->running = true;
    r = fn(arg);
    call->running = false;
    first_finish(comm, key, r == 0 ? 1 : 0);
    return first_return(comm, journal, r);
}

int order_first_begin(struct tutti_comm *comm, uint32_t site, const char *name, int64_t timeout_ns)
{
    int r;
    struct key_call *call = first_books(comm, KIND_FIRST_BEGIN, name, true, &r);
    if (!call)
        return r;
    bool journal = first_journal(comm, KIND_FIRST_BEGIN, site);
    r = first_enter(comm, KIND_FIRST_BEGIN, site, call->key, call->calls + 1, timeout_ns);
    if (r >= 0)
        call->calls++;
    if (r == 1)
        call->running = true;
    return first_return(comm, journal, r);
}

int order_first_end(struct tutti_comm *comm, uint32_t site, const char *name, int error)
{
    int r;
    struct key_call *call = first_books(comm, KIND_FIRST_BEGIN, name, false, &r);
    if (!call || !call->running) {
        comm_explain(comm,
                     "first_end of key \"%.60s\": this rank does not run it; first_begin gave it "
                     "no 1",
                     name);
        return r == -EMSGSIZE ? r : -EPERM;
    }
    bool journal = first_journal(comm, KIND_FIRST_END, site);
    call->running = false;
    if (error)
        /* the round is still to be done: the next call of this rank asks for it again */
        call->calls--;
    first_finish(comm, call->key, error ? 0 : call->calls);
    first_return(comm, journal, 0);
    return error;
}
