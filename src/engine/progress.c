/* One round: pump each comm that has work, declare a sleeper for each head that waits, sleep on all
 * their words and on the bell, then take the declarations back. The thread holds `round` for the
 * whole round, so a comm's memory can be given back only between two rounds (progress_quiesce).
 * Each round begins through `door`, so that a caller that waits for the gap is not overtaken by the
 * next round. The thread does not hold the world's lock while it pumps: an operation may need it
 * for its staging, and `done` may call anything on other comms. */
#include "engine/progress.h"

#include "base/clock.h"
#include "os/thread.h"
#include "watch/threads.h"

#include <errno.h>
#include <stdlib.h>

enum { SLEEPS_MAX = 32 };         /* waits of one sleep; the others are polled each PROGRESS_POLL */

struct progress {
    pthread_t thread;
    pthread_mutex_t door, round;
    shared32 bell;                 /* +1 by each caller with news for the thread; a private futex */
    shared32 stop;
    shared32 naps;                     /* 1: it will look at all comms within PROGRESS_NAP; 0: only
                                          if it is rung. Only the thread stores it */
    struct wait_ways ways;
    bool spare;                        /* there is a CPU for it beside those of the ranks */
    struct nap_row row;
    /* when it last read the clock, and its own CPU time then */
    uint64_t seen_ns, seen_cpu_ns;
    /* which comm with work is pumped first: moves on, so that each comm gets its words watched */
    int first;
};

struct round {
    struct futex_word words[FUTEX_WORDS];
    struct drive_sleep sleeps[SLEEPS_MAX];
    struct tutti_comm *comms[SLOTS_MAX];
    int words_used, sleeps_used, comms_used, waits, watched;
    /* meant: the slice without waits for devices; the delay of a wake is measured against it */
    uint64_t slice, meant;
};

static void progress_list(struct world *world, struct round *r)
{
    pthread_mutex_lock(&world->lock);
    for (struct tutti_comm *c = world->comms; c && r->comms_used < SLOTS_MAX; c = c->next) {
        int waits = r->waits;
        for (const struct pump *const *pump = world->pumps; *pump; pump++)
            r->waits += (*pump)->under_way(c);
        if (r->waits > waits)
            r->comms[r->comms_used++] = c;
    }
    pthread_mutex_unlock(&world->lock);
}

static void round_limit(struct round *r, uint64_t slice)
{
    r->slice = slice < r->slice ? slice : r->slice;
    r->meant = slice < r->meant ? slice : r->meant;
}

/* How many of the words that are left each wait may watch: its share, and at most the words
   left. */
static int round_room(const struct round *r)
{
    int left = FUTEX_WORDS - r->words_used, share = (FUTEX_WORDS - 1) / r->watched;
    return r->sleeps_used == SLEEPS_MAX ? 0 : share < left ? share : left;
}

/* Checked again right before it is pumped. Parts of the comm may be in the making, under the same
   lock. */
static bool round_asks(struct world *world, const struct tutti_comm *c, const struct pump *pump)
{
    pthread_mutex_lock(&world->lock);
    bool under_way = pump->under_way(c);
    pthread_mutex_unlock(&world->lock);
    return under_way;
}

static void round_pump(struct round *r, struct tutti_comm *c, const struct pump *pump,
                       uint64_t now)
{
    int used = 0;
    struct futex_word *words = r->words + r->words_used;
    struct nap nap = pump->round(c, now, words, round_room(r), &r->sleeps[r->sleeps_used],
                                 &used);
    round_limit(r, nap.most);
    r->slice = nap.sooner < r->slice ? nap.sooner : r->slice;
    r->words_used += used;
    r->sleeps_used += used > 0;
}

static void round_excuse(struct world *world, struct round *r, uint64_t now, uint64_t excess)
{
    for (int i = 0; i < r->comms_used; i++)
        for (const struct pump *const *pump = world->pumps; *pump; pump++)
            if (round_asks(world, r->comms[i], *pump))
                (*pump)->excuse(r->comms[i], now, excess);
}

/* Since the last call this thread either ran or slept, and slept no longer than meant. For the rest
   of that time the process was stopped. If it slept because there was nothing to do, the time of
   new work counts from its wake. */
static void round_account(struct world *world, struct round *r, uint64_t slice)
{
    struct progress *p = world->progress;
    uint64_t now = clock_ns(), cpu = clock_cpu_ns(), passed = now - p->seen_ns,
             ran = cpu - p->seen_cpu_ns;
    uint64_t excess = passed > ran ? drive_excess(slice == UINT64_MAX ? 0 : slice, passed - ran)
                                   : 0;
    if (excess)
        round_excuse(world, r, now, excess);
    p->seen_ns = now;
    p->seen_cpu_ns = cpu;
}

static void progress_gather(struct world *world, struct round *r)
{
    progress_list(world, r);
    round_account(world, r, 0);                      /* before deadlines are judged */
    r->watched = r->waits < 1 ? 1 : r->waits < SLEEPS_MAX ? r->waits : SLEEPS_MAX;
    for (int i = 0; i < r->comms_used; i++) {
        struct tutti_comm *c = r->comms[(world->progress->first + i) % r->comms_used];
        for (const struct pump *const *pump = world->pumps; *pump; pump++)
            if (round_asks(world, c, *pump))
                round_pump(r, c, *pump, world->progress->seen_ns);
    }
    world->progress->first = (world->progress->first + r->watched) & 0xffff;
}

bool nap_again(struct nap_row *row, bool work, bool left)
{
    if (work) {
        row->most = row->vain > 0 ? NAPS : row->most;
        row->vain = 0;
    }
    if (left || row->vain < 0)
        return false;
    if (row->vain < row->most) {
        row->vain++;
        return true;
    }
    row->most = row->most > 1 ? row->most / 2 : 1;
    row->vain = -1;
    return false;
}

/* If the ranks need all CPUs, each ring for this thread takes a CPU away from a rank. So after
   there was work, it polls by itself for a while, and a caller that sees `naps` need not ring
   (progress_tell): either the thread will look, or it has cleared naps before that caller reads
   it. */
static void round_nap(struct progress *p, struct round *r)
{
    if (p->spare)
        return;
    if (nap_again(&p->row, r->comms_used > 0, r->slice != UINT64_MAX))
        round_limit(r, PROGRESS_NAP);
    if (r->slice <= PROGRESS_NAP)
        store_release32(&p->naps, 1);
}

/* bell: its value at the door. A ring after that ends this round. */
static void progress_round(struct world *world, uint32_t bell)
{
    struct progress *p = world->progress;
    struct round r;
    r.words_used = 1;
    r.sleeps_used = r.comms_used = r.waits = 0;
    r.slice = r.meant = UINT64_MAX;
    r.words[0] = (struct futex_word){ &p->bell, bell };
    if (load_relaxed32(&p->naps)) {           /* relaxed: our own word */
        store_release32(&p->naps, 0);
        fence_full();        /* a caller that saw naps == 1 has added its work before: seen below */
    }
    progress_gather(world, &r);
    round_nap(p, &r);
    if (load_acquire32(&p->stop))
        r.slice = r.meant = 0;
    const struct wait_ways *ways = &p->ways;
    if (r.slice == UINT64_MAX)
        ways->sleep(ways->arg, r.words, 1, 3600u * UINT64_C(1000000000));
    else if (r.slice)
        wait_sleep(ways, r.words, r.words_used, r.slice, r.slice < 1000000 ? r.slice : 1000000);
    round_account(world, &r, r.meant);
    for (int i = 0; i < r.sleeps_used; i++)
        drive_retire(ways, &r.sleeps[i]);
    if (r.comms_used)                         /* a thread with work under way also helps others */
        watch_meanwhile(&r.comms[0]->watch);
}

static void *progress_run(void *arg)
{
    struct world *world = arg;
    struct progress *p = world->progress;
    threads_serves = true;
    while (!load_acquire32(&p->stop)) {
        pthread_mutex_lock(&p->door);
        pthread_mutex_lock(&p->round);
        uint32_t bell = load_acquire32(&p->bell);
        pthread_mutex_unlock(&p->door);
        progress_round(world, bell);
        pthread_mutex_unlock(&p->round);
    }
    return NULL;
}

int progress_start(struct world *world)
{
    pthread_mutex_lock(&world->lock);
    struct progress *p = world->progress ? NULL : calloc(1, sizeof *p);
    int r = world->progress ? 0 : p ? 0 : -ENOMEM;
    if (p) {
        p->row = (struct nap_row){ NAPS, 0 };
        p->ways = wait_ways_with(&(struct wait_progress){ .run = NULL });
        pthread_mutex_init(&p->door, NULL);
        pthread_mutex_init(&p->round, NULL);
        /* E12 acquire */
        p->spare = load_acquire32(&world->arena.join->cpus) >= 2 * (uint32_t)world->size;
        p->seen_ns = clock_ns();            /* as if it woke now: a stop may come before it runs */
        world->progress = p;
        r = thread_start(&p->thread, progress_run, world);
        if (r < 0) {
            world->progress = NULL;
            free(p);
        }
    }
    pthread_mutex_unlock(&world->lock);
    return r;
}

void progress_kick(struct world *world)
{
    struct progress *p = world->progress;
    if (!p)
        return;
    fetch_add32(&p->bell, 1);
    futex_wake(&p->bell, 1);
}

void progress_tell(struct world *world)
{
    struct progress *p = world->progress;
    fence_full();                               /* the caller's news first, then the load of naps */
    if (p && !load_acquire32(&p->naps))
        progress_kick(world);
}

bool progress_attends(const struct world *world)
{
    return world->progress && !world->progress->spare;
}

void progress_quiesce(struct world *world)
{
    struct progress *p = world->progress;
    if (!p)
        return;
    pthread_mutex_lock(&p->door);
    progress_kick(world);
    pthread_mutex_lock(&p->round);
    pthread_mutex_unlock(&p->round);
    pthread_mutex_unlock(&p->door);
}

void progress_stop(struct world *world)
{
    struct progress *p = world->progress;
    if (!p)
        return;
    store_release32(&p->stop, 1);
    progress_kick(world);
    pthread_join(p->thread, NULL);
    pthread_mutex_destroy(&p->round);
    pthread_mutex_destroy(&p->door);
    world->progress = NULL;
    free(p);
}
