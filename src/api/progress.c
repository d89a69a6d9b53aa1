/* One round: pump every comm that has work, declare a sleeper for each head that waits, sleep on all their words and on the bell, take the
 * declarations back. `round` is held all through a round, so that a comm's memory can be given back between two (work_quiesce). */
#include "api/progress.h"

#include "api/work.h"
#include "watch/drive.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>

enum { SLEEPS_MAX = 32 };

struct progress {
    pthread_t thread;
    pthread_mutex_t round;
    shared32 bell;                     /* +1 by whoever has news for the thread; a private futex */
    shared32 stop;
};

struct round {
    struct futex_word words[FUTEX_WORDS];
    struct drive_sleep sleeps[SLEEPS_MAX];
    struct op *ops[SLEEPS_MAX];
    struct tutti_comm *comms[SLEEPS_MAX];
    int words_used, sleeps_used;
    uint64_t slice;
};

static void progress_gather(struct world *world, struct round *r)
{
    int share = FUTEX_WORDS - 1;
    pthread_mutex_lock(&world->lock);
    int busy = 0;
    for (struct tutti_comm *c = world->comms; c; c = c->next)
        busy += work_under_way(c);
    share = busy ? share / busy : share;
    for (struct tutti_comm *c = world->comms; c && r->sleeps_used < SLEEPS_MAX; c = c->next) {
        if (!work_under_way(c))
            continue;
        pthread_mutex_lock(&c->queue_lock);
        struct op *head = work_pump(c, true);
        if (head && share > 0) {
            uint64_t slice = drive_slice(head);
            int i = r->sleeps_used++;
            r->slice = slice < r->slice ? slice : r->slice;
            r->words_used += drive_gather(head, r->words + r->words_used, share, &r->sleeps[i]);
            r->comms[i] = c;
            head->slices++;
        }
        pthread_mutex_unlock(&c->queue_lock);
    }
    pthread_mutex_unlock(&world->lock);
}

static void progress_round(struct world *world)
{
    struct progress *p = world->progress;
    struct round r = { .words_used = 1, .slice = UINT64_MAX };
    r.words[0] = (struct futex_word){ &p->bell, load_acquire32(&p->bell) };
    progress_gather(world, &r);
    if (load_acquire32(&p->stop))
        r.slice = 0;
    const struct wait_ways *ways = &wait_ways_kernel;
    if (r.slice == UINT64_MAX)
        ways->sleep(ways->arg, r.words, 1, 3600u * UINT64_C(1000000000));
    else if (r.slice && ways->sleep(ways->arg, r.words, r.words_used, r.slice) == -ENOSYS)
        ways->sleep(ways->arg, r.words, 1, r.slice < 1000000 ? r.slice : 1000000);
    for (int i = 0; i < r.sleeps_used; i++)
        drive_retire(ways, &r.sleeps[i]);
}

static void *progress_run(void *arg)
{
    struct world *world = arg;
    struct progress *p = world->progress;
    while (!load_acquire32(&p->stop)) {
        pthread_mutex_lock(&p->round);
        progress_round(world);
        pthread_mutex_unlock(&p->round);
    }
    return NULL;
}

int progress_start(struct world *world)
{
    if (world->progress)
        return 0;
    pthread_mutex_lock(&world->lock);
    struct progress *p = world->progress ? NULL : calloc(1, sizeof *p);
    int r = world->progress ? 0 : p ? 0 : -ENOMEM;
    if (p) {
        sigset_t all, old;
        pthread_mutex_init(&p->round, NULL);
        world->progress = p;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &old);    /* signals are for the program's own threads */
        r = -pthread_create(&p->thread, NULL, progress_run, world);
        pthread_sigmask(SIG_SETMASK, &old, NULL);
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

void work_quiesce(struct world *world)
{
    if (!world->progress)
        return;
    progress_kick(world);
    pthread_mutex_lock(&world->progress->round);
    pthread_mutex_unlock(&world->progress->round);
}

void work_stop(struct world *world)
{
    struct progress *p = world->progress;
    if (!p)
        return;
    store_release32(&p->stop, 1);
    progress_kick(world);
    pthread_join(p->thread, NULL);
    pthread_mutex_destroy(&p->round);
    world->progress = NULL;
    free(p);
}
