/* Works of a queue's end are tasks in a list of that end. They end in the order in which they were
 * started, but for those whose deadline passes. A thread that starts, tests or waits makes the
 * steps of the first one under the list's lock. No thread sleeps under it. A waiter that spun in
 * vain leaves them to the progress thread, which sleeps on the word that the first one waits for,
 * as a blocking call does; the waiter sleeps on its handle only. */
#include "engine/feed_work.h"

#include "engine/guard.h"
#include "engine/work.h"
#include "base/clock.h"
#include "base/error.h"
#include "watch/drive.h"
#include "watch/journal.h"

#include <string.h>
#include <time.h>

enum { LEAVE_NS = 50000 };             /* between two looks whether all have left */

struct feed_work {
    struct tutti_work work;
    struct tutti_queue *q;
    struct feed_task task;
    bool ended;                        /* its task is in no list of those under way */
    const void *lists[];               /* of the caller's call */
};

static struct feed_work *work_of(struct feed_task *task)
{
    return (struct feed_work *)(void *)((char *)task - offsetof(struct feed_work, task));
}

bool feed_works(const struct tutti_comm *comm)
{
    return comm->feed && load_acquire32(&comm->feed->works);
}

/* ---- ends; all under the lock ---- */

static void work_ends(struct tutti_queue *q, struct feed_task **link, int result)
{
    struct feed_task *task = *link;
    struct feed_work *h = work_of(task);
    if (task == q->engine.first)
        q->waits = false;
    *link = task->next;
    if (q->engine.last == &task->next)
        q->engine.last = link;
    task->next = NULL;
    h->work.result = result;
    h->ended = true;
    *q->engine.ended_last = task;
    q->engine.ended_last = &task->next;
}

/* Ends it before its message has gone or come. */
static void work_drop(struct tutti_queue *q, struct feed_task *task, int result)
{
    struct feed_task **link = &q->engine.first;
    while (*link != task)
        link = &(*link)->next;
    if (task->call.kind == KIND_QUEUE_PUT)
        feed_put_fails(q, &task->put, result);
    work_ends(q, link, result);
}

/* The lock is open while `done` runs. Once `over` is set, the handle's owner may free it, and must
   find no work under way: so the counts are lowered before. One thread at a time. */
static void works_tell(struct tutti_queue *q)
{
    if (q->engine.calling)
        return;
    q->engine.calling = true;
    while (q->engine.ended) {
        struct feed_work *h = work_of(q->engine.ended);
        q->engine.ended = h->task.next;
        if (!q->engine.ended)
            q->engine.ended_last = &q->engine.ended;
        work_call_done(&h->work, &q->engine.lock, ATTENTION_NESTED_FEED);
        fetch_sub32(&q->works, 1);
        completion_signal(&h->work.completion);
    }
    q->engine.calling = false;
}

void feed_works_end(struct tutti_queue *q)
{
    pthread_mutex_lock(&q->engine.lock);
    while (q->engine.first)
        work_drop(q, q->engine.first, -ECANCELED);
    works_tell(q);
    pthread_mutex_unlock(&q->engine.lock);
}

/* A thread that has called the last `done` may still hold the lock. */
void feed_works_leave(struct tutti_queue *q)
{
    if (!q->engine.used)
        return;
    while (load_acquire32(&q->works))
        nanosleep(&(struct timespec){ .tv_nsec = LEAVE_NS }, NULL);
    progress_quiesce(q->comm->world);
    pthread_mutex_lock(&q->engine.lock);
    pthread_mutex_unlock(&q->engine.lock);
}

/* ---- steps; all under the lock ---- */

/* NULL: none is under way. Else the first one waits, for *wait. */
static struct feed_task *works_move(struct tutti_queue *q, struct feed_wait *wait)
{
    while (q->engine.first) {
        int r = feed_step(q, q->engine.first, wait);
        if (r == FEED_WAITS)
            return q->engine.first;
        work_ends(q, &q->engine.first, r);
    }
    return NULL;
}

/* From now on its steps look for deaths. */
static void works_await(struct tutti_queue *q, const struct feed_wait *wait, uint64_t now)
{
    bool moved = !q->waits || q->engine.seen != wait->seen;
    if (!q->waits) {
        q->waits = true;
        q->wait = timed_wait_begin(q->comm, -1);
        q->wait.idles = q->comm->watch.me != q->writer;
        feed_count(&q->waited, 1);
    }
    if (moved || now < q->engine.looked_ns) {
        q->engine.looked_ns = now;
        q->engine.seen = wait->seen;
    }
    q->wait.whole = (int)((now - q->engine.looked_ns) / WAIT_LONG & INT32_MAX);
}

/* True: the rank that the first one waits for is gone, and the next step ends that wait. The steps
 * themselves do not ask the system. */
static bool works_gone(struct tutti_queue *q, const struct feed_wait *wait)
{
    bool gone = timed_wait_gone(&q->wait, wait->peer);
    q->wait.whole = 0;
    return gone;
}

/* Ends those that are late. Returns how long the next sleep may be, ns. */
static uint64_t works_expire(struct tutti_queue *q, const struct feed_wait *wait, uint64_t now)
{
    uint64_t slice = WAIT_LONG;
    for (struct feed_task *task = q->engine.first, *next; task; task = next) {
        next = task->next;
        int64_t most = task->call.timeout_ns;
        if (most < 0)
            continue;
        uint64_t passed = now > task->began_ns ? now - task->began_ns : 0;
        if (passed >= (uint64_t)most) {
            work_drop(q, task, feed_late(q, &task->call, task == q->engine.first ? wait : NULL));
            continue;
        }
        uint64_t left = (uint64_t)most - passed + 1;
        left = left < drive_slice_most(most) ? left : drive_slice_most(most);
        slice = left < slice ? left : slice;
    }
    return slice;
}

/* The comm has failed. What came before that has been taken; the first one that still waits ends
 * with the cause, the others as calls that begin on a broken comm. */
static void works_break(struct tutti_queue *q, int cause)
{
    struct feed_wait wait;
    for (struct feed_task *task = works_move(q, &wait); task; task = q->engine.first) {
        work_drop(q, task, cause);
        cause = -ECANCELED;
    }
}

/* Appends the words to sleep on and declares a sleeper, if there is room for them. Each of them is
 * loaded before what it stands for is looked at. Returns how long to sleep at most. */
static uint64_t works_watch(struct tutti_queue *q, uint64_t now, struct futex_word *words, int room,
                            struct drive_sleep *sleep, int *used)
{
    struct watch *w = &q->comm->watch;
    struct feed_wait wait;
    for (;;) {
        uint32_t news = load_acquire32(&w->slot->news);              /* E7 acquire */
        uint64_t verdict = load_acquire64(&w->slot->verdict);        /* E7 acquire */
        if (!works_move(q, &wait))
            return UINT64_MAX;
        works_await(q, &wait, now);
        const struct feed_task *first = q->engine.first;
        uint64_t slice = works_expire(q, &wait, now);
        if (q->engine.first != first)
            continue;
        int cause = timed_wait_check(&q->wait, (int)wait.peer, wait.what);
        if (cause) {
            works_break(q, cause);
            return UINT64_MAX;
        }
        shared32 *alive = process_mark_word(&w->seats[wait.peer]->mark);
        uint32_t held = load_acquire32(alive);                       /* E5 acquire */
        if (works_gone(q, &wait))
            continue;
        if (!room)
            return slice < PROGRESS_POLL ? slice : PROGRESS_POLL;
        *sleep = (struct drive_sleep){ wait.sleeps, words, room < 4 ? 1 : 4 };
        *used = sleep->n;
        words[0] = (struct futex_word){ low_half(wait.word), (uint32_t)wait.seen };
        if (room >= 4) {
            words[1] = (struct futex_word){ low_half(&w->slot->verdict), (uint32_t)verdict };
            words[2] = (struct futex_word){ &w->slot->news, news };
            words[3] = (struct futex_word){ alive, held };
        }
        /* the kernel loads the words again: E97 acquire, E99 acquire */
        fetch_add32(sleep->sleepers, 1);
        fence_full();                                                /* E97 fence, E99 fence */
        feed_count(&q->sleeps, 1);
        return slice;
    }
}

static struct nap feed_round(struct tutti_comm *comm, uint64_t now, struct futex_word *words,
                             int room, struct drive_sleep *sleep, int *used)
{
    struct tutti_queue *q = comm->feed;
    if (load_acquire32(&q->engine.attended))
        return (struct nap){ PROGRESS_NAP, UINT64_MAX };
    pthread_mutex_lock(&q->engine.lock);
    uint64_t slice = works_watch(q, now, words, room, sleep, used);
    works_tell(q);
    pthread_mutex_unlock(&q->engine.lock);
    return (struct nap){ slice, UINT64_MAX };
}

static void feed_excuse(struct tutti_comm *comm, uint64_t now, uint64_t excess)
{
    struct tutti_queue *q = comm->feed;
    pthread_mutex_lock(&q->engine.lock);
    for (struct feed_task *task = q->engine.first; task; task = task->next)
        task->began_ns = drive_later(task->began_ns, now, excess);
    pthread_mutex_unlock(&q->engine.lock);
}

const struct pump feed_pump = { feed_works, feed_round, feed_excuse };

/* ---- handles ---- */

static void feed_move(struct tutti_work *work)
{
    struct tutti_queue *q = ((struct feed_work *)(void *)work)->q;
    struct feed_wait wait;
    if (pthread_mutex_trylock(&q->engine.lock) != 0)
        return;
    works_move(q, &wait);
    works_tell(q);
    pthread_mutex_unlock(&q->engine.lock);
}

/* Makes steps while the budget of a wait lasts, unless another thread does. */
static void work_spin(struct feed_work *h)
{
    const struct watch *w = &h->work.comm->watch;
    struct wait_budget budget = wait_learned_budget(&w->budget);
    struct wait_turns turns = { 0 };
    while (!completion_over(&h->work.completion)) {
        feed_move(&h->work);
        if (!completion_over(&h->work.completion) && !wait_turn(&turns, &budget, w->ways))
            return;
    }
}

/* Spins. Without a spare CPU the progress thread keeps away meanwhile. If the work is not over
 * then, this thread rings it. */
static void work_attend(struct feed_work *h)
{
    struct world *world = h->work.comm->world;
    bool attends = progress_attends(world);
    if (attends)
        fetch_add32(&h->q->engine.attended, 1);
    work_spin(h);
    if (attends)
        fetch_sub32(&h->q->engine.attended, 1);
    if (attends && !completion_over(&h->work.completion))
        progress_kick(world);
}

/* The interrupt function said stop: it ends, unless it has just ended otherwise. */
static void work_interrupt(struct feed_work *h)
{
    struct tutti_queue *q = h->q;
    pthread_mutex_lock(&q->engine.lock);
    if (!h->ended)
        work_drop(q, &h->task, -EINTR);
    works_tell(q);
    pthread_mutex_unlock(&q->engine.lock);
}

static int until_over(struct feed_work *h, const struct patience *patience)
{
    const struct tutti_queue *q = h->q;
    if (!completion_over(&h->work.completion))
        work_attend(h);
    while (!completion_over(&h->work.completion)) {
        if (work_patience_over(&h->work, patience))
            return -EAGAIN;
        work_sleep(&h->work, patience);
        if (!completion_over(&h->work.completion) && q->interrupt
            && q->interrupt(q->interrupt_arg))
            work_interrupt(h);
    }
    return 0;
}

static int feed_await(struct tutti_work *work, const struct patience *patience)
{
    struct feed_work *h = (struct feed_work *)(void *)work;
    struct watch *w = &work->comm->watch;
    bool journal = patience->told && !(load_acquire32(&w->attention) & ATTENTION_WORK);
    if (journal)
        journal_begin(w, 0, fingerprint_make(h->task.call.kind, 0, 0, 0, 0), 0, h->task.call.site,
                      clock_tick());
    int r = until_over(h, patience);
    if (journal)
        journal_end(w, r == 0 ? work->result : r, clock_tick());
    return r;
}

static pthread_mutex_t *feed_lock(struct tutti_work *work)
{
    return &((struct feed_work *)(void *)work)->q->engine.lock;
}

static const struct work_shape feed_shape = { feed_await, feed_move, feed_lock };

static void work_describe(struct feed_work *h, struct tutti_queue *q, const struct feed_task *task)
{
    *h = (struct feed_work){ .work = { .shape = &feed_shape, .comm = q->comm, .keep_ns = -1 },
                             .q = q, .task = *task };
    h->task.next = NULL;
    h->task.call.behind = true;
    h->task.began_ns = clock_ns();
}

/* The caller's lists may be gone after the call. */
static void work_lists(struct feed_work *h, int parts)
{
    struct feed_put *put = &h->task.put;
    size_t *bytes = (size_t *)(void *)(h->lists + parts);
    if (put->loan || parts <= 0)
        return;
    memcpy(h->lists, put->part, (size_t)parts * sizeof *put->part);
    memcpy(bytes, put->bytes, (size_t)parts * sizeof *put->bytes);
    put->part = h->lists;
    put->bytes = bytes;
}

static void work_start(struct feed_work *h, const tutti_call *call)
{
    if ((call->flags & TUTTI_KEEP) && h->task.call.timeout_ns >= 0) {
        h->work.keep_ns = (int64_t)h->task.began_ns + h->task.call.timeout_ns;
        h->task.call.timeout_ns = -1;
    }
    work_give(&h->work, call);
}

/* Adds it to those under way, and makes steps. The handle of a started one may be gone when this
 * returns. */
static void work_enter(struct feed_work *h)
{
    struct tutti_queue *q = h->q;
    struct world *world = h->work.comm->world;
    int64_t timeout_ns = h->task.call.timeout_ns;
    struct feed_wait wait;
    pthread_mutex_lock(&q->engine.lock);
    bool alone = fetch_add32(&q->works, 1) == 0;
    q->engine.used = true;
    if (h->task.put.loan)
        h->task.put.loan->state = LOAN_GIVEN;
    *q->engine.last = &h->task;
    q->engine.last = &h->task.next;
    bool waits = works_move(q, &wait) != NULL;
    works_tell(q);
    pthread_mutex_unlock(&q->engine.lock);
    /* The progress thread watches the word of the first one. It must be told only of that, or of a
     * deadline that may pass while it sleeps. */
    if (waits && (alone || (timeout_ns >= 0 && timeout_ns < WAIT_LONG)))
        progress_tell(world);
}

int feed_work_run(struct tutti_queue *q, const struct feed_task *task, int parts,
                  const tutti_call *call)
{
    if (!call || !call->work) {
        struct feed_work h;
        work_describe(&h, q, task);
        work_enter(&h);
        struct patience endless = patience_endless();
        endless.told = true;
        return work_end(&h.work, feed_await(&h.work, &endless));
    }
    size_t lists = (size_t)parts * (sizeof(const void *) + sizeof(size_t));
    int r;
    struct feed_work *h = work_make(q->comm, sizeof *h + lists, &r);
    if (!h) {
        comm_explain(q->comm, "%s at %s: no memory or no thread for work under way: %s",
                     kind_name(task->call.kind),
                     arena_site_text(&q->comm->world->arena, task->call.site), error_system(-r));
        return r;
    }
    work_describe(h, q, task);
    work_lists(h, parts);
    work_start(h, call);
    work_enter(h);
    return 0;
}
