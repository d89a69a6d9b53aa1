/* Everything here is off the fast path: it runs when a call is refused, or when the comm's
 * attention word is not 0. */
#include "engine/guard.h"

#include "engine/fault.h"
#include "engine/owed.h"
#include "base/clock.h"
#include "base/error.h"
#include "p2p/p2p.h"
#include "watch/journal.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>

/* A function under once holds up its comm and its world. `done` may run in a round of the progress
 * thread, which pumps all comms. */
bool guard_nested(const struct tutti_comm *comm)
{
    const struct tutti_comm *inside = comm_callback;
    if (!inside || inside->world != comm->world)
        return false;
    return inside == comm || comm == comm->world->whole
        || (load_acquire32(&inside->watch.attention) & ATTENTION_NESTED_ANY);
}

/* Takes the lock only in a thread's first call. After that, two threads that take turns on a comm
   only store their numbers. */
void guard_aside(const struct tutti_comm *comm)
{
    struct world *world = comm->world;
    if (threads_known(&world->threads))
        return;
    pthread_mutex_lock(&world->lock);
    threads_call(&world->threads);
    pthread_mutex_unlock(&world->lock);
    if (!pthread_getspecific(world->thread_end))
        pthread_setspecific(world->thread_end, world);
}

void guard_stranger(struct tutti_comm *comm)
{
    guard_aside(comm);
    /* relaxed: each thread stores its own number, and looks only for its own */
    store_relaxed64(&comm->engine.caller, threads_self());
}

int guard_busy(struct tutti_comm *comm)
{
    return comm_callback == comm ? -EDEADLK : -EBUSY;
}

static int guard_journal(struct tutti_comm *comm, enum kind kind, uint32_t site, int error)
{
    /* with work under way the journal is another thread's */
    if (!(load_acquire32(&comm->watch.attention) & ATTENTION_WORK)) {
        uint64_t tick = clock_tick();
        journal_begin(&comm->watch, 0, fingerprint_make(kind, 0, 0, 0, 0), 0, site, tick);
        journal_end(&comm->watch, error, tick);
    }
    return error;
}

int guard_refuse(struct tutti_comm *comm, enum kind kind, uint32_t site, const char *format, ...)
{
    char why[REPORT_TEXT];
    va_list args;
    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    comm_explain(comm, "%s at %s refused: %s", kind_name(kind),
                 arena_site_text(&comm->world->arena, site), why);
    return guard_journal(comm, kind, site, -EINVAL);
}

int guard_fail(struct tutti_comm *comm, enum kind kind, uint32_t site, int error,
               const char *format, ...)
{
    char why[ABORT_TEXT], words[2 * ABORT_TEXT];
    va_list args;
    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    snprintf(words, sizeof words, "%s: %s", why, error_system(error));
    comm_explain(comm, "%s at %s: %s", kind_name(kind), arena_site_text(&comm->world->arena, site),
                 words);
    comm_give_up(comm, words);
    return guard_journal(comm, kind, site, error);
}

int guard_call(struct tutti_comm *comm, enum kind kind, uint32_t site, const tutti_call *call)
{
    if (!call)
        return 0;
    if (call->flags & ~(unsigned)TUTTI_KEEP)
        return guard_refuse(comm, kind, site,
                            "unknown bits 0x%x in call.flags; there is TUTTI_KEEP",
                            call->flags & ~(unsigned)TUTTI_KEEP);
    if ((call->flags & TUTTI_KEEP) && !call->work)
        return guard_refuse(comm, kind, site,
                            "TUTTI_KEEP needs call.work: a deadline that breaks nothing needs a "
                            "handle that goes on");
    if (call->done && !call->work)
        return guard_refuse(comm, kind, site, "call.done needs call.work");
    for (size_t i = 0; i < sizeof call->reserved / sizeof call->reserved[0]; i++)
        if (call->reserved[i])
            return guard_refuse(comm, kind, site,
                                "call.reserved[%zu] is not 0: fill a tutti_call with zeros first",
                                i);
    return 0;
}

/* The thread that joined has ended: the calling thread holds the mark from now on. */
static void guard_take_over(struct tutti_comm *comm)
{
    struct world *world = comm->world;
    struct seat *seat = &world->arena.seats[world->rank];
    pthread_mutex_lock(&world->lock);
    if (load_acquire32(&world->adrift) && process_mark_hold(&seat->mark) == 0) {
        process_self(&seat->id);
        store_release32(&seat->state, SEAT_JOINED);                  /* E11 release */
        store_release32(&world->adrift, 0);
        for (struct tutti_comm *c = world->comms; c; c = c->next)
            fetch_and32(&c->watch.attention, ~(uint32_t)ATTENTION_ADRIFT);
    }
    pthread_mutex_unlock(&world->lock);
}

/* Another thread, with work under way, may have met the failure and still be writing the report,
   under its lock. This waits for the lock, so that a caller that gets -ECANCELED can read the
   report. It waits half a second at most: the lock may be held over a function of the caller's,
   which made this call. */
static int guard_broken(struct tutti_comm *comm)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += (until.tv_nsec + 500000000) / 1000000000;
    until.tv_nsec = (until.tv_nsec + 500000000) % 1000000000;
    pthread_mutex_t *locks[] = { &comm->engine.queue_lock, comm->p2p ? &comm->p2p->lock : NULL };
    for (size_t i = 0; i < sizeof locks / sizeof locks[0]; i++)
        if (locks[i] && pthread_mutex_timedlock(locks[i], &until) == 0)
            pthread_mutex_unlock(locks[i]);
    return -ECANCELED;
}

int guard_odd(struct tutti_comm *comm, enum kind kind, uint32_t site)
{
    uint32_t attention = load_acquire32(&comm->watch.attention);
    if ((attention & ATTENTION_NESTED_ANY) && comm_callback == comm) {
        comm_explain(comm,
                     "%s at %s: called from a callback on the same comm, which would wait for "
                     "itself",
                     kind_name(kind), arena_site_text(&comm->world->arena, site));
        return -EDEADLK;
    }
    if (attention & ATTENTION_ADRIFT)
        guard_take_over(comm);
    /* for them a broken comm is the normal case */
    bool mends = kind == KIND_SHRINK || kind == KIND_AGREE;
    if ((attention & ATTENTION_BROKEN) && !mends)
        return guard_broken(comm);
    if (attention & ATTENTION_FAULT) {
        fault_strike(comm, kind);
        if ((load_acquire32(&comm->watch.attention) & ATTENTION_BROKEN) && !mends)
            return guard_broken(comm);
    }
    if (comm->engine.owed.on && (mends || kind_collective(kind))) {
        int r = owed_end(comm);
        return mends ? 0 : r;
    }
    return 0;
}

uint32_t guard_site_slow(struct tutti_comm *comm, const char *site)
{
    struct site_seen *seen = &comm->engine.sites[((uintptr_t)site >> 3) % SITE_CACHE];
    *seen = (struct site_seen){ site, arena_site(&comm->world->arena, site) };
    return seen->number;
}
