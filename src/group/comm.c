/* A handle is one allocation of some 12 KiB, half of it the report's buffer, so that a failure
 * needs no memory to be explained. */
#include "group/comm.h"

#include "base/error.h"
#include "base/tiny.h"
#include "group/directory.h"
#include "os/memory.h"
#include "watch/death.h"
#include "watch/rollcall.h"
#include "watch/verdict.h"

#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Measured at 4 and 8 ranks on 2 CPUs: with fewer yields ranks may fall asleep in a barrier that is
 * under way, with more they only burn time. So many are the most; waits that are long take them
 * away (sync/wait). */
enum { YIELDS = TINY(80, 0) };

static int comm_alloc(struct tutti_comm *comm, uint32_t size)
{
    struct watch *w = &comm->watch;
    w->seats = calloc(size, sizeof(struct seat *));
    w->seen = calloc(size, sizeof *w->seen);
    w->gone = calloc(size, sizeof *w->gone);
    w->lost = calloc(size, sizeof *w->lost);
    comm->aside.seen = calloc(size, sizeof *comm->aside.seen);
    comm->aside.gone = calloc(size, 2 * sizeof *comm->aside.gone);
    comm->aside.lost = comm->aside.gone ? (shared8 *)(comm->aside.gone + size) : NULL;
    return w->seats && w->seen && w->gone && w->lost && comm->aside.seen && comm->aside.gone
        ? 0
        : -ENOMEM;
}

static void comm_free_memory(struct tutti_comm *comm)
{
    struct watch *w = &comm->watch;
    free(w->seats);
    free(w->seen);
    free(w->gone);
    free(w->lost);
    free(comm->aside.seen);
    free(comm->aside.gone);
    free(comm->creations);
    free(comm->api.ops);
    free(comm->coll.cma.window);
    /* the thread that ended the last work may still hold the lock */
    pthread_mutex_lock(&comm->engine.queue_lock);
    pthread_mutex_unlock(&comm->engine.queue_lock);
    pthread_mutex_destroy(&comm->engine.queue_lock);
    pthread_mutex_destroy(&comm->report_lock);
    free(comm);
}

static void comm_set_budget(struct tutti_comm *comm)
{
    struct world *world = comm->world;
    uint32_t cpus = load_acquire32(&world->arena.join->cpus);                   /* E12 acquire */
    comm->crowded = comm->watch.size > cpus;
    bool spin = !comm->crowded || world->spin_given;
    comm->watch.budget = (struct wait_budget){
        .spin_ticks = spin && !(world->flags & TUTTI_NO_SPIN) ? world->spin_ticks : 0,
        .yields = comm->crowded ? YIELDS : YIELDS / 5,
        .yield_ticks = world->yield_ticks,
        .spin_rounds = world->spin_rounds
    };
    bool lingers = !spin && !(world->flags & TUTTI_NO_SPIN);
    comm->watch.linger_ticks = lingers ? world->linger_ticks : 0;
}

struct tutti_comm *comm_open(struct world *world, struct slot *slot, uint32_t mine, int *error)
{
    struct tutti_comm *comm = NULL;
    uint32_t size = arena_slot_size(&world->arena, slot);
    *error = -EIO;
    if (mine >= size)
        return NULL;
    *error = -ENOMEM;
    /* computed once: `size` and the address must belong together, even if the arena is damaged */
    struct member *members = arena_member(slot, 0);
    if (memory_populate(&members[mine], sizeof(struct member)) < 0
        || posix_memalign((void **)&comm, 64, sizeof *comm))
        return NULL;
    *comm = (struct tutti_comm){
        .world = world, .fork_word = world->fork_word,
        .seq = world->arena.header->first_seq, .birth = slot->birth
    };
    pthread_mutex_init(&comm->engine.queue_lock, NULL);
    pthread_mutex_init(&comm->report_lock, NULL);
    if (comm_alloc(comm, size) < 0) {
        comm_free_memory(comm);
        return NULL;
    }
    struct watch *w = &comm->watch;
    w->slot = slot;
    watch_begin(w, members, mine, size);
    w->ways = &world->ways;
    w->arena = &world->arena;
    w->handles = world->handles;
    w->threads = world->beside.run ? NULL : &world->threads;
    w->timeout_ns = world->timeout_ns;
    w->warn_ns = world->warn_ns;
    w->pause_ticks = world->pause_ticks;
    w->verify = world->arena.header->verify;
    w->interrupt = world->interrupt;
    w->meanwhile = &world->meanwhile;
    w->interrupt_arg = world->interrupt_arg;
    for (uint32_t p = 0; p < size; p++) {
        uint32_t rank = arena_slot_rank(&world->arena, slot, p);
        if (rank == RANK_NOBODY) {
            comm_free_memory(comm);
            *error = -EIO;
            return NULL;
        }
        w->seats[p] = &world->arena.seats[rank];
    }
    if (world->whole)
        snprintf(comm->name, sizeof comm->name, "comm %llu", (unsigned long long)slot->birth);
    else
        snprintf(comm->name, sizeof comm->name, "world");
    w->name = comm->name;
    comm_set_budget(comm);
    /* relaxed: the flag only routes the next call of this rank to the slow path */
    if (load_relaxed32(&world->adrift))
        fetch_or32(&w->attention, ATTENTION_ADRIFT);
    pthread_mutex_lock(&world->lock);
    threads_call(&world->threads);
    comm->next = world->comms;
    world->comms = comm;
    pthread_mutex_unlock(&world->lock);
    *error = 0;
    return comm;
}

int comm_slot(struct world *world, const struct directory_key *key, struct slot **slot)
{
    int r = directory_find_or_make(&world->arena, key, slot);
    if (r == -ENOSPC && death_seek(&world->whole->watch))
        r = directory_find_or_make(&world->arena, key, slot);
    return r;
}

void comm_inherit(struct tutti_comm *comm, const struct tutti_comm *parent)
{
    comm->watch.timeout_ns = parent->watch.timeout_ns;
}

/* From here on no other thread of this rank finds the comm, or its slot by it. */
static void comm_unlist(struct tutti_comm *comm)
{
    struct world *world = comm->world;
    if (comm->gpu.close)
        comm->gpu.close(comm);
    pthread_mutex_lock(&world->lock);
    for (struct tutti_comm **at = &world->comms; *at; at = &(*at)->next)
        if (*at == comm) {
            *at = comm->next;
            break;
        }
    stage_close(comm);
    pthread_mutex_unlock(&world->lock);
}

/* Gives up the slot last: from then on it may be another comm's. */
void comm_drop(struct tutti_comm *comm)
{
    comm_unlist(comm);
    verdict_quit(&comm->watch, QUIT_FREED);
    comm_free_memory(comm);
}

void comm_close(struct tutti_comm *comm)
{
    comm_unlist(comm);
    comm_free_memory(comm);
}

void comm_abort(struct tutti_comm *comm, const char *why)
{
    fetch_add32(&comm->aborting, 1);
    struct member *mine = comm->watch.mine;
    if (!(load_acquire32(&mine->quit) & QUIT_ABORT)) {
        const char *text = why && *why ? why : "no reason given";
        size_t n = strnlen(text, sizeof mine->why - 1);
        memcpy(mine->why, text, n);
        mine->why[n] = 0;
    }
    verdict_quit(&comm->watch, QUIT_ABORT);
    fetch_sub32(&comm->aborting, 1);
}

void comm_aborted(struct tutti_comm *comm)
{
    while (load_acquire32(&comm->aborting))
        sched_yield();
}

void comm_give_up(struct tutti_comm *comm, const char *reason)
{
    struct member *mine = comm->watch.mine;
    if (!(load_acquire32(&mine->quit) & QUIT_ABORT))
        snprintf(mine->why, sizeof mine->why, "it failed: %.*s", ABORT_TEXT - 12, reason);
    verdict_quit(&comm->watch, QUIT_ABORT);
}

_Thread_local struct tutti_comm *comm_callback;

struct tutti_comm *comm_callback_begin(struct tutti_comm *comm)
{
    struct tutti_comm *outer = comm_callback;
    comm_callback = comm;
    fetch_or32(&comm->watch.attention, ATTENTION_NESTED);
    return outer;
}

void comm_callback_end(struct tutti_comm *comm, struct tutti_comm *outer)
{
    if (outer != comm)
        fetch_and32(&comm->watch.attention, ~(uint32_t)ATTENTION_NESTED);
    comm_callback = outer;
}

/* A forked child takes no lock: a thread of the parent may have held it at the fork. */
static void report_lock(const struct tutti_comm *comm, int (*change)(pthread_mutex_t *))
{
    if (*comm->fork_word == 1)
        change((pthread_mutex_t *)&comm->report_lock);
}

void comm_show(struct tutti_comm *comm, const struct text *t)
{
    report_lock(comm, pthread_mutex_lock);
    memcpy(comm->report, t->at, t->used + 1);
    /* relaxed: only says whether a report is old */
    store_relaxed64(&comm->reported, load_relaxed64(&comm->numbered));
    report_lock(comm, pthread_mutex_unlock);
}

uint64_t comm_read(const struct tutti_comm *comm, char into[static REPORT_TEXT])
{
    report_lock(comm, pthread_mutex_lock);
    memcpy(into, comm->report, REPORT_TEXT);
    uint64_t reported = load_relaxed64(&comm->reported);             /* relaxed: as above */
    report_lock(comm, pthread_mutex_unlock);
    return reported;
}

void comm_explain(struct tutti_comm *comm, const char *format, ...)
{
    char room[REPORT_TEXT];
    struct text t = TEXT_IN(room);
    va_list args;
    va_start(args, format);
    int n = vsnprintf(room, sizeof room, format, args);
    va_end(args);
    t.used = n < 0 ? 0 : (size_t)n < sizeof room ? (size_t)n : sizeof room - 1;
    comm_show(comm, &t);
}

bool comm_explain_end(struct tutti_comm *comm, const struct op *op, int result)
{
    struct watch *w = &comm->watch;
    const char *kind = kind_name(fingerprint_kind(op->claim.descriptor)),
               *site = arena_site_text(w->arena, op->site);
    if (result == DAMAGED)
        comm_explain(comm,
                     "%s at %s: what another rank has left in the arena cannot be true: somebody "
                     "has written over it", kind, site);
    else if (w->failed) {
        char room[REPORT_TEXT];
        struct text t = TEXT_IN(room);
        rollcall_failure(&t, w, op);
        comm_show(comm, &t);
    } else if (result == -EINTR)
        comm_explain(comm,
                     "interrupted in %s at %s: the interrupt function said stop; the comm is "
                     "aborted", kind, site);
    else
        return false;
    return true;
}

const char *comm_reason(int error)
{
    return error == -ENOSPC ? "too many comms are open; free some"
        : error == -EIO     ? "somebody has written over the arena"
                            : error_system(error);
}
