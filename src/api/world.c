/* A world's life: limits, opening; and the three ways to leave: finalize, the end of the thread
 * that joined, the end of the process.
 *
 * State of the process: the list of its worlds, for the exit handler, and its key for the end of a
 * thread. */
#define TUTTI_NO_SITES
#include "api/world.h"

#include "engine/fault.h"
#include "engine/feed_work.h"
#include "api/memory.h"
#include "api/survivor.h"
#include "engine/queue.h"
#include "engine/request.h"
#include "feed/feed.h"
#include "arena/shared_map.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/knob.h"
#include "base/staged.h"
#include "coll/select.h"
#include "gpu/device_memory.h"
#include "gpu/proof.h"
#include "group/directory.h"
#include "group/seat.h"
#include "order/order.h"
#include "os/memory.h"
#include "os/stack.h"
#include "p2p/p2p.h"
#include "watch/death.h"
#include "watch/verdict.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SPIN_US = 30, SPIN_ROUND_US = 2000, YIELD_US = 1000, LINGER_US = 3 };

static struct {
    pthread_mutex_t lock;
    struct world *worlds;
    pthread_once_t once;
    pthread_key_t thread_end;
    void *marks;            /* of the thread that forks, as the C library keeps them */
} life = { .lock = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT };

/* Leaves a world without freeing its memory. If another thread than the mark's holder calls, the
 * lock stays until the holder's end. */
static void world_leave(struct world *world)
{
    struct seat *seat = &world->arena.seats[world->rank];
    if (process_mark_mine(&seat->mark)) {
        seat_leave(&world->arena, world->rank);
        return;
    }
    store_release32(&seat->state, SEAT_LEFT);                        /* E11 release */
    for (struct tutti_comm *c = world->comms; c; c = c->next)
        verdict_quit(&c->watch, QUIT_LEFT);
}

void world_leave_all(void)
{
    for (struct world *w = life.worlds; w; w = w->next)
        if (*w->fork_word == 1) {
            survivor_leaves(w);
            world_leave(w);
        }
}

/* A thread has ended: no search for cycles counts it any more. */
static void world_thread_gone(struct world *w)
{
    pthread_mutex_lock(&w->lock);
    bool known = threads_end(&w->threads);
    for (struct tutti_comm *c = w->comms; c && known; c = c->next)
        /* relaxed: a new thread may be given this one's number, and must not find it there */
        if (load_relaxed64(&c->engine.caller) == threads_self())
            store_relaxed64(&c->engine.caller, 0);                          /* relaxed: as above */
    pthread_mutex_unlock(&w->lock);
}

/* The joining thread ends in good order. If the process holds several ranks, its rank ends with it.
   Else the rank goes on without it, and the next thread that calls takes over the mark. */
static void world_thread_end(void *arg)
{
    (void)arg;
    pthread_mutex_lock(&life.lock);
    for (struct world *w = life.worlds; w; w = w->next) {
        struct seat *seat = &w->arena.seats[w->rank];
        if (*w->fork_word != 1)
            continue;
        world_thread_gone(w);
        if (!process_mark_mine(&seat->mark))
            continue;
        if (seat->several) {
            survivor_leaves(w);
            world_leave(w);
            continue;
        }
        pthread_mutex_lock(&w->lock);
        store_release32(&w->adrift, 1);
        for (struct tutti_comm *c = w->comms; c; c = c->next)
            fetch_or32(&c->watch.attention, ATTENTION_ADRIFT);
        store_release32(&seat->state, SEAT_ADRIFT);                  /* E11 release */
        process_mark_leave(&seat->mark);
        pthread_mutex_unlock(&w->lock);
    }
    pthread_mutex_unlock(&life.lock);
}

/* A forked child has no memory of the arena and no descriptor that would keep it: the memory is
   freed with the last rank. The child's worlds belong to its parent, and every call there is
   refused. */
static void world_before_fork(void)
{
    pthread_mutex_lock(&life.lock);
    life.marks = process_marks_before_fork();
}
static void world_in_parent(void) { pthread_mutex_unlock(&life.lock); }

static void world_in_child(void)
{
    process_marks_in_child(life.marks);
    for (struct world *w = life.worlds; w; w = w->next) {
        if (*w->fork_word != 0)                      /* a kernel that wipes no page */
            *(uint64_t *)w->fork_page = 0;
        kept_close(&w->arena.file);
        kept_close(&w->host);
        for (int p = 0; p < w->size; p++)
            death_handle_close(&w->handles[p]);
    }
    pthread_mutex_unlock(&life.lock);
}

#ifdef __GLIBC__
/* Of these C libraries one tells the status: so a peer learns that who left did not do so well. */
static void world_at_exit(int status, void *arg)
{
    (void)arg;
    for (struct world *w = life.worlds; w; w = w->next)
        if (*w->fork_word == 1)
            /* a parent that knows more writes over it */
            store_release32(&w->arena.seats[w->rank].status, (uint32_t)(status & 0xff) << 9 | 1);
    world_leave_all();
}
static int world_when_over(void) { return on_exit(world_at_exit, NULL); }
#else
static int world_when_over(void) { return atexit(world_leave_all); }
#endif

static void world_setup(void)
{
    pthread_key_create(&life.thread_end, world_thread_end);
    pthread_atfork(world_before_fork, world_in_parent, world_in_child);
    world_when_over();
    stack_begin();
}

/* Short waits are counted in pauses; this measures the ticks of one. A microsecond, once a
 * world. */
static uint32_t world_pause_ticks(void)
{
    enum { PAUSES = 64 };
    uint64_t began = clock_tick();
    for (int i = 0; i < PAUSES; i++)
        cpu_pause();
    uint64_t each = (clock_tick() - began) / PAUSES;
    return each > 1000 ? 1000 : (uint32_t)each;      /* the thread may have been interrupted */
}

static void world_set_limits(struct world *world, const tutti_options *o)
{
    double rate = clock_rate(world->arena.header->origin, clock_now());
    world->timeout_ns = o->timeout_ms == 0 ? TIMEOUT_BUILT_IN : timeout_give(o->timeout_ms);
    world->warn_ns = o->warn_ms < 0 ? -1 : (int64_t)o->warn_ms * 1000000;
    world->spin_given = o->spin_us > 0;
    unsigned spin_us = o->spin_us ? o->spin_us : SPIN_US;
    world->spin_ticks = (uint64_t)((double)(spin_us < SPIN_ROUND_US ? spin_us : SPIN_ROUND_US)
                                   * 1000.0 * rate);
    world->spin_rounds = spin_us / SPIN_ROUND_US + (spin_us % SPIN_ROUND_US != 0);
    world->yield_ticks = (uint64_t)(YIELD_US * 1000.0 * rate);
    world->linger_ticks = (uint64_t)(LINGER_US * 1000.0 * rate);
    world->staged_less = (uint64_t)(STAGED_LESS * rate);
    world->pause_ticks = world_pause_ticks();
    world->flags = o->flags;
    world->interrupt = o->interrupt;
    world->interrupt_arg = o->interrupt_arg;
    world->beside = (struct wait_progress){ o->progress, o->progress_arg };
    world->ways = wait_ways_with(&world->beside);
}

static void world_free(struct world *world)
{
    memory_close(world);
    if (world->span)
        span_close(world->span);
    if (world->fork_page)
        munmap(world->fork_page, memory_page());
    order_close(world);
    threads_close(&world->threads);
    for (int p = 0; world->handles && p < world->size; p++)
        death_handle_close(&world->handles[p]);
    free((void *)world->handles);
    pthread_mutex_destroy(&world->lock);
    free(world->rules);
    free(world);
}

static int world_faults(struct tutti_comm *comm, struct text *why)
{
    const char *list;
    char *rest = NULL;
    if (!knob_text(KNOB_FAULT, &list))
        return 0;
    char *copy = strdup(list);
    int r = copy ? 0 : -ENOMEM;
    for (char *s = copy ? strtok_r(copy, ",", &rest) : NULL; s; s = strtok_r(NULL, ",", &rest)) {
        text_add(why, "TUTTI_FAULT: ");
        r = fault_add(comm, s, why);
        if (r < 0)
            break;
        text_clear(why);
    }
    free(copy);
    return r;
}

static const struct pump *const world_pumps[] = { &queue_pump, &request_pump, &feed_pump, NULL };

static int world_open_comm(struct world *world, struct text *why)
{
    struct slot *slot;
    int r = directory_world(&world->arena, &slot);
    if (r == 0) {
        struct tutti_comm *comm = comm_open(world, slot, (uint32_t)world->rank, &r);
        world->whole = comm;
    }
    if (r < 0)
        text_add(why, "no memory for the world's control pages: %s", error_text(r));
    return r;
}

int world_begin(struct tutti_comm **comm, struct arena *arena, int rank, int host_fd,
                const tutti_options *o, int several, struct text *why)
{
    struct world *world = calloc(1, sizeof *world);
    if (!world)
        return -ENOMEM;
    pthread_once(&life.once, world_setup);
    pthread_mutex_init(&world->lock, NULL);
    *world = (struct world){
        .arena = *arena, .rank = rank, .size = (int)arena->header->size,
        .host = kept_of(host_fd), .lock = world->lock
    };
    world_set_limits(world, o);
    world->self = arena->seats[rank].id;
    host_memory_find(&world->host_memory);
    for (uint32_t p = 0; p < arena->header->size; p++) {
        const struct process_id *id = &arena->seats[p].id;
        several |= (int)p != rank && id->pid == world->self.pid
            && id->pid_namespace == world->self.pid_namespace;
    }
    arena->seats[rank].several = several != 0;
    world->threads.seat = &world->arena.seats[rank];
    world->threads.arena = &world->arena;
    world->fork_page = memory_fork_page();
    world->fork_word = world->fork_page;
    world->thread_end = life.thread_end;
    world->pumps = world_pumps;
    world->span = span_open(arena_span(arena, (uint32_t)rank), arena->header->span_bytes);
    int r = world->span ? memory_open(world) : -ENOMEM;
    world->rules = malloc(sizeof *world->rules);
    world->handles = calloc((size_t)world->size, sizeof *world->handles);
    r = r == 0 && world->fork_page && world->rules && world->handles ? 0 : -ENOMEM;
    if (r == 0)
        r = select_layers(world->rules, arena->header->rules, why);
    if (r == 0)
        r = order_open(world);
    if (r == 0)
        r = world_open_comm(world, why);
    if (r == 0) {
        r = world_faults(world->whole, why);
        if (r < 0)
            comm_close(world->whole);
    }
    if (r < 0) {
        world_free(world);
        return r;
    }
    pthread_mutex_lock(&life.lock);
    shared_map_not_for_forks(arena->base);
    world->next = life.worlds;
    life.worlds = world;
    pthread_mutex_unlock(&life.lock);
    pthread_setspecific(life.thread_end, world);
    *comm = world->whole;
    return 0;
}

static bool world_busy(struct world *world)
{
    bool busy = false;
    pthread_mutex_lock(&world->lock);
    for (struct tutti_comm *c = world->comms; c; c = c->next)
        busy |= queue_under_way(c) || p2p_under_way(c) || feed_works(c)
            || load_acquire32(&c->engine.busy);
    pthread_mutex_unlock(&world->lock);
    return busy;
}

int world_close(struct tutti_comm *comm)
{
    struct world *world = comm->world;
    if (world_busy(world))
        return -EBUSY;
    progress_stop(world);
    pthread_mutex_lock(&life.lock);
    for (struct world **at = &life.worlds; *at; at = &(*at)->next)
        if (*at == world) {
            *at = world->next;
            break;
        }
    pthread_mutex_unlock(&life.lock);
    for (struct tutti_comm *c = world->comms; c; c = c->next)
        comm_aborted(c);
    survivor_leaves(world);
    bool mine = process_mark_mine(&world->arena.seats[world->rank].mark);
    device_memory_leave(world, true);
    world_leave(world);
    device_memory_close(world);
    proof_end(world);
    while (world->comms) {
        p2p_close(world->comms);
        feed_forget(world->comms);
        comm_close(world->comms);
    }
    comm_close_world(world);
    kept_close(&world->host);
    struct arena arena = world->arena;
    world_free(world);
    if (mine)               /* else the holder's robust lock lies in it until its thread ends */
        arena_detach(&arena);
    return 0;
}
