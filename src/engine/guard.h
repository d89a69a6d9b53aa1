/* Job: do the first and last steps of every public function: check that the process is the rank,
 *      that the comm is free and whole, and handle the rare states.
 * Owns: tutti_comm.engine.busy, tutti_comm.engine.sites.
 * Never: does the function's own work. */
#ifndef TUTTI_ENGINE_GUARD_H
#define TUTTI_ENGINE_GUARD_H

#include "group/comm.h"

#include <errno.h>

void guard_stranger(struct tutti_comm *comm);
/* A thread makes a call that is allowed at any time: the search for cycles counts it from now
   on. */
void guard_aside(const struct tutti_comm *comm);
int guard_busy(struct tutti_comm *comm);
int guard_odd(struct tutti_comm *comm, enum kind kind, uint32_t site);
/* True: this thread is in a callback of comm. To free comm would free what the callback runs on. */
bool guard_nested(const struct tutti_comm *comm);

/* Called first: a call that fails leaves no handle. */
static inline void guard_clear(const tutti_call *call)
{
    if (call && call->work)
        *call->work = NULL;
}

/* Notes the calling thread, if it is not the last one that called: a peer that waits for this rank
   may have to count it. */
static inline void guard_known(struct tutti_comm *comm)
{
    /* relaxed: only this thread stores its own number */
    if (load_relaxed64(&comm->engine.caller) != threads_self())
        guard_stranger(comm);
}

/* 0: inside (guard_leave when done); -EINVAL, -ECHILD, -EBUSY, -EDEADLK. Four private loads
 * and a store. */
static inline int guard_enter(struct tutti_comm *comm)
{
    if (!comm)
        return -EINVAL;
    if (*comm->fork_word != 1)
        return -ECHILD;
    guard_known(comm);
    /* relaxed: a check against misuse, documented as one that may slip */
    if (load_relaxed32(&comm->engine.busy))
        return guard_busy(comm);
    store_relaxed32(&comm->engine.busy, 1);                 /* relaxed: as above */
    return 0;
}

/* The number of a call site. The most recent ones are cached. */
uint32_t guard_site_slow(struct tutti_comm *comm, const char *site);
static inline uint32_t guard_site(struct tutti_comm *comm, const char *site)
{
    struct site_seen *seen = &comm->engine.sites[((uintptr_t)site >> 3) % SITE_CACHE];
    return seen->site == site ? seen->number : guard_site_slow(comm, site);
}

static inline int guard_leave(struct tutti_comm *comm, int result)
{
    store_relaxed32(&comm->engine.busy, 0);                 /* relaxed: as above */
    return result;
}

/* Called just before an operation begins: 0, or -ECANCELED on a broken comm, -EDEADLK …; makes
 * the faults that are due. One load in the normal case. */
static inline int guard_operation(struct tutti_comm *comm, enum kind kind, uint32_t site)
{
    comm->engine.calls[kind]++;
    return comm->engine.owed.on
            || load_acquire32(&comm->watch.attention) & ~(uint32_t)ATTENTION_WORK
        ? guard_odd(comm, kind, site)
        : 0;
}

/* Refuses a bad argument: explains it in the report and in the journal, where waiting peers read
 * it. Returns -EINVAL. */
__attribute__((format(printf, 4, 5))) int guard_refuse(struct tutti_comm *comm, enum kind kind,
                                                       uint32_t site, const char *format, ...);

/* Fails a call with good arguments for which this rank lacks something: its peers, who may wait for
 * it, see that at once. Returns error. */
__attribute__((format(printf, 5, 6))) int guard_fail(struct tutti_comm *comm, enum kind kind,
                                                     uint32_t site, int error, const char *format,
                                                     ...);

/* Checks a tutti_call: unknown flags, reserved fields, KEEP without work. 0 or
 * -EINVAL (refused). */
int guard_call(struct tutti_comm *comm, enum kind kind, uint32_t site, const tutti_call *call);

/* The deadline of a call: its own, or the comm's. < 0: none. */
static inline int64_t guard_timeout(const struct tutti_comm *comm, const tutti_call *call)
{
    if (!call || call->timeout_ms == 0)
        return comm->watch.timeout_ns;
    return timeout_give(call->timeout_ms);
}

#endif
