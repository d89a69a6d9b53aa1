/* A queue's life, and its waits. The ring lies in the writer's span and is kept as all memory of
 * messages is: until every rank has let go of the comm. A queue costs a slot of the arena, and a
 * comm for each rank.
 * A wait costs what it costs everywhere (group/timed_wait). How long it polls before that is
 * learned from when the messages came (sync/wait). */
#include "feed/feed.h"

#include "group/exchange.h"
#include "os/caller.h"
#include "os/memory.h"
#include "watch/journal.h"
#include "watch/rollcall.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

/* Polls are worth it for as long as a sleep and its wake cost both sides, about: yield_ticks are a
   millisecond. */
enum { SOON_OF_YIELDS = 20 };
enum { CLOSE_NS = 50000 };             /* between two wakes of a call that is to end */

/* ---- waits ---- */

static void feed_wait_begin(struct tutti_queue *q, const struct feed_call *call)
{
    struct watch *w = &q->comm->watch;
    q->waits = true;
    q->wait = timed_wait_begin(q->comm, call->timeout_ns);
    q->wait.idles = w->me != q->writer;
    feed_count(&q->waited, 1);
    if (!(load_acquire32(&w->attention) & ATTENTION_WORK))
        journal_begin(w, 0, fingerprint_make(call->kind, 0, 0, 0, 0), 0, call->site, clock_tick());
}

void feed_report(struct tutti_queue *q, const struct feed_call *call, struct text *t)
{
    text_clear(t);
    text_add(t, "%s on %s, called by rank %u at %s: ", kind_name(call->kind), q->comm->name,
             q->comm->watch.me, arena_site_text(q->comm->watch.arena, call->site));
}

int feed_late(struct tutti_queue *q, const struct feed_call *call, const struct feed_wait *wait)
{
    CALLER_KEPT;
    char room[REPORT_TEXT];
    struct text t = TEXT_IN(room);
    feed_report(q, call, &t);
    text_add(&t, "the deadline of ");
    text_add_duration(&t, (uint64_t)call->timeout_ns);
    if (wait) {
        text_add(&t, " passed while it waited %s of rank %u: ", wait->what, wait->peer);
        rollcall_whom(&t, &q->comm->watch, wait->peer);
    } else
        text_add(&t, " passed before those that were started before it had ended\n");
    comm_show(q->comm, &t);
    return -ETIMEDOUT;
}

int feed_gone(struct tutti_queue *q, const struct feed_call *call, uint32_t peer)
{
    CALLER_KEPT;
    char room[REPORT_TEXT];
    struct text t = TEXT_IN(room);
    feed_report(q, call, &t);
    text_add(&t, peer == q->writer ? "the writer, rank %u: " : "the reader, rank %u: ", peer);
    rollcall_whom(&t, &q->comm->watch, peer);
    comm_show(q->comm, &t);
    return -EOWNERDEAD;
}

int feed_damaged(struct tutti_queue *q, const struct feed_call *call)
{
    CALLER_KEPT;
    char room[REPORT_TEXT];
    struct text t = TEXT_IN(room);
    feed_report(q, call, &t);
    text_add(&t, "what stands in the queue cannot be true: somebody has written over it\n");
    comm_show(q->comm, &t);
    return -EIO;
}

static int feed_stopped(struct tutti_queue *q)
{
    if (load_acquire32(&q->closed))                                  /* E100 acquire */
        return -ECANCELED;
    return q->interrupt && q->interrupt(q->interrupt_arg) ? -EINTR : 0;
}

int feed_wait(struct tutti_queue *q, const struct feed_call *call, const struct feed_wait *wait)
{
    CALLER_KEPT;
    struct watch *w = &q->comm->watch;
    struct wait_ends ends = { &w->slot->verdict, &w->slot->news };
    struct wait_budget budget = wait_pace_budget(&q->pace, &w->budget);
    if (!q->waits)
        feed_wait_begin(q, call);
    if (!q->since)
        q->since = clock_tick();
    if (q->wait.slices == 0 && wait_spin(wait->spin, wait->value, ends, &budget, w->ways))
        return 0;
    feed_count(&q->sleeps, 1);
    int r = timed_wait_sleep(&q->wait, wait->word, wait->seen, wait->sleeps, wait->peer,
                             wait->what);
    if (r == -ETIMEDOUT)
        return feed_late(q, call, wait);
    return r < 0 ? r : feed_stopped(q);
}

/* Most waits of readers that poll end here, without a record, a clock or a look at the writer. */
bool feed_glance(struct tutti_queue *q, const shared64 *word)
{
    if (q->waits || !q->pace.credit || !q->comm->watch.budget.spin_ticks)
        return false;
    q->since = clock_tick();
    for (int i = 0; i < FEED_GLANCES; i++) {
        cpu_pause();
        if (load_acquire64(word)) {                                  /* E96 acquire */
            wait_pace_learn(&q->pace, 0);
            q->since = 0;
            return true;
        }
    }
    return false;
}

void feed_wake(struct tutti_queue *q, shared64 *word)
{
    CALLER_KEPT;
    struct watch *w = &q->comm->watch;
    feed_count(&q->wakes, 1);
    w->ways->wake(w->ways->arg, low_half(word), INT32_MAX);
}

/* When it came: as the other side has said, if it had to wake this one; else just now. */
void feed_came_late(struct tutti_queue *q)
{
    struct watch *w = &q->comm->watch;
    uint64_t now = clock_tick();
    /* relaxed: a hint; another message's does no harm */
    uint64_t woke = load_relaxed64(&q->head->woke);
    bool told = w->me != q->writer && q->wait.slices && woke > q->since && woke < now;
    wait_pace_learn(&q->pace, (told ? woke : now) - q->since);
    q->since = 0;
    timed_wait_moved(&q->wait);
    q->wait.slices = 0;
}

/* ---- calls ---- */

int feed_step(struct tutti_queue *q, struct feed_task *task, struct feed_wait *wait)
{
    return task->call.kind == KIND_QUEUE_PUT ? feed_put_step(q, &task->put, &task->call, wait)
                                             : feed_get_step(q, &task->get, &task->call, wait);
}

int feed_enter(struct tutti_queue *q)
{
    uint32_t free = 0;
    if (!swap_if32(&q->inside, &free, 1))                            /* E100 release */
        /* E100 acquire: who is inside may be the thread that closes */
        return load_acquire32(&q->closed) ? -ECANCELED : -EBUSY;
    fence_behind_change();                                           /* E100 fence */
    if (!load_acquire32(&q->closed))                                 /* E100 acquire */
        return 0;
    store_release32(&q->inside, 0);                                  /* E100 release */
    return -ECANCELED;
}

void feed_waited(struct tutti_queue *q, int result)
{
    timed_wait_moved(&q->wait);
    if (!(load_acquire32(&q->comm->watch.attention) & ATTENTION_WORK))
        journal_end(&q->comm->watch, result, clock_tick());
    q->waits = false;
    q->since = 0;
}

/* The call under way may be about to sleep, and has a private word that nobody else's futex knows:
 * so it is woken until it has gone. */
void feed_close(struct tutti_queue *q, void (*end_works)(struct tutti_queue *q))
{
    struct watch *w = &q->comm->watch;
    uint32_t no = 0;
    if (!swap_if32(&q->closed, &no, 1))                              /* E100 release */
        return;
    fence_full();                                                    /* E100 fence */
    for (uint32_t inside = 0; !swap_if32(&q->inside, &inside, 1); inside = 0) { /* E100 acquire */
        end_works(q);                                /* the call may wait behind them */
        if (w->me != q->writer)
            w->ways->wake(w->ways->arg, low_half(&q->head->head), INT32_MAX);
        for (uint32_t p = 0; p < w->size && w->me == q->writer; p++)
            w->ways->wake(w->ways->arg, low_half(&q->head->readers[p].tail), INT32_MAX);
        nanosleep(&(struct timespec){ .tv_nsec = CLOSE_NS }, NULL);
    }
    end_works(q);
    if (w->me == q->writer)
        feed_end(q);
    else
        feed_away(q);
    store_release32(&q->inside, 0);                                  /* E100 release */
}

void feed_figures(const struct tutti_queue *q, tutti_queue_figures *figures)
{
    const struct watch *w = &q->comm->watch;
    /* E97 acquire, E98 acquire: only compared here */
    uint64_t head = load_acquire64(&q->head->head), behind = 0;
    for (uint32_t p = 0; p < w->size; p++) {
        uint64_t tail = load_acquire64(&q->head->readers[p].tail);   /* E98 acquire */
        bool counts = p != q->writer && (w->me == q->writer || p == w->me) && tail != FEED_AWAY;
        if (counts && head > tail && head - tail > behind)
            behind = head - tail;
    }
    *figures = (tutti_queue_figures){
        .messages = load_relaxed64(&q->messages),                    /* relaxed: for people */
        .bytes = load_relaxed64(&q->bytes),                          /* relaxed: for people */
        .waits = load_relaxed64(&q->waited),                         /* relaxed: for people */
        .sleeps = load_relaxed64(&q->sleeps),                        /* relaxed: for people */
        .wakes = load_relaxed64(&q->wakes),                          /* relaxed: for people */
        .behind = behind, .room = q->room,
        .held = load_acquire32(&q->holds), .lost = load_acquire32(&q->lost)
    };
}

/* ---- made and freed ---- */

static void feed_free(struct tutti_queue *q)
{
    if (q) {
        pthread_mutex_destroy(&q->lock);
        pthread_mutex_destroy(&q->engine.lock);
        feed_loans_free(q);
        free(q->part);
        free(q->away);
        free(q);
    }
}

/* The progress thread may be looking. */
static void feed_known(struct tutti_comm *comm, struct tutti_queue *q)
{
    pthread_mutex_lock(&comm->world->lock);
    comm->feed = q;
    pthread_mutex_unlock(&comm->world->lock);
}

void feed_forget(struct tutti_comm *comm)
{
    struct tutti_queue *q = comm->feed;
    feed_known(comm, NULL);
    feed_free(q);
}

static struct tutti_queue *feed_new(struct tutti_comm *comm, uint32_t writer, uint64_t room,
                                    unsigned flags, uint64_t start)
{
    struct tutti_queue *q = calloc(1, sizeof *q);
    bool *away = calloc(comm->watch.size, sizeof *away);
    if (!q || !away) {
        free(q);
        free(away);
        return NULL;
    }
    pthread_mutex_init(&q->lock, NULL);
    pthread_mutex_init(&q->engine.lock, NULL);
    q->engine.last = &q->engine.first;
    q->engine.ended_last = &q->engine.ended;
    q->comm = comm;
    q->writer = writer;
    q->flags = flags;
    q->room = room;
    q->whole = room / 4 - FEED_RECORD;
    q->piece = (room / 16 > FEED_STEP ? room / 16 : FEED_STEP) - FEED_RECORD;
    q->at = q->least = start;
    q->clear = start + FEED_STEP;
    q->left = comm->watch.size - 1;
    q->first = 1;
    q->pace.soon = comm->world->yield_ticks / SOON_OF_YIELDS;
    q->away = away;
    q->away[writer] = true;
    return q;
}

static void feed_place(struct tutti_queue *q, char *at)
{
    q->head = (struct feed_head *)(void *)at;
    q->ring = at + feed_head_bytes(q->comm->watch.size);
}

/* In huge pages where the system has some: readers copy out of it all the time. */
void *feed_memory(struct tutti_queue *q, size_t bytes, int *error)
{
    size_t huge;
    if (bytes < MEMORY_HUGE_FROM)
        return comm_hold(q->comm, bytes, error);
    void *at = comm_hold_bare(q->comm, bytes, error);
    if (at && memory_populate_huge(at, bytes, 0, &huge) < 0) {
        comm_hold_end(q->comm, at);
        *error = -ENOMEM;
        return NULL;
    }
    return at;
}

/* The writer's part. 0 or -errno. */
static int feed_lay(struct tutti_queue *q)
{
    int error;
    uint32_t size = q->comm->watch.size;
    char *at = feed_memory(q, feed_head_bytes(size) + q->room, &error);
    if (!at)
        return error;
    feed_place(q, at);
    store_relaxed64(&q->head->head, q->at);          /* relaxed: the exchange publishes it (E1) */
    store_relaxed64(&q->head->woke, 0);                              /* relaxed: as above */
    for (uint32_t p = 0; p < size; p++) {
        store_relaxed64(&q->head->readers[p].tail, q->at);           /* relaxed: as above */
        store_relaxed64(&q->head->readers[p].full, FEED_AWAY);       /* relaxed: as above */
        store_relaxed32(&q->head->readers[p].awaited, 0);            /* relaxed: as above */
        store_relaxed32(&q->head->readers[p].asleep, 0);             /* relaxed: as above */
    }
    store_relaxed64(&feed_record_at(q, q->at)->stamp, 0);            /* relaxed: as above */
    return 0;
}

/* What each rank says: where the ring is, or 0; and its error, with a digest of what it was
 * asked for. */
static uint64_t feed_asked(const struct tutti_queue *q, int error)
{
    const uint64_t asked[] = { q->room, q->flags, q->writer };
    return (uint64_t)(uint32_t)-error << 32 | (uint32_t)text_hash(asked, sizeof asked, 0);
}

static int feed_hear(struct tutti_queue *q, struct tutti_comm *parent, uint64_t seq)
{
    struct tutti_comm *comm = q->comm;
    const struct arena *arena = &comm->world->arena;
    uint64_t place = 0, bytes = feed_head_bytes(comm->watch.size) + q->room;
    for (uint32_t p = 0; p < comm->watch.size; p++) {
        uint64_t said = exchanged(comm, seq, p, 1);
        int error = (int)(said >> 32);
        if (error) {
            int r = error > 0 && error < 4096 ? -error : -EIO;
            comm_explain(parent, "queue_create: rank %u has no memory for the queue: %s", p,
                         r == -ENOSPC ? "its span is full; raise TUTTI_SPAN_BYTES"
                                      : comm_reason(r));
            return r;
        }
        if ((uint32_t)said != (uint32_t)feed_asked(q, 0)) {
            comm_explain(parent, "queue_create: rank %u gave another writer or other options", p);
            return -EPROTO;
        }
        place = p == q->writer ? exchanged(comm, seq, p, 0) : place;
    }
    if (place < arena->header->spans_at || place > arena->bytes || bytes > arena->bytes - place) {
        comm_explain(parent, "queue_create: the writer's memory does not lie in the arena: %s",
                     comm_reason(-EIO));
        return -EIO;
    }
    feed_place(q, arena->base + place);
    return 0;
}

static int feed_meet(struct tutti_queue *q, struct tutti_comm *made, struct tutti_comm *parent,
                     uint32_t site)
{
    uint64_t seq, place = 0;
    int error = q ? 0 : -ENOMEM;
    if (q && made->watch.me == q->writer) {
        error = feed_lay(q);
        place = error ? 0 : (uint64_t)((char *)q->head - made->world->arena.base);
    }
    uint64_t said = q ? feed_asked(q, error) : (uint64_t)ENOMEM << 32;
    int r = comm_exchange(made, KIND_QUEUE_CREATE, site, place, said, &seq);
    if (r < 0) {
        char report[REPORT_TEXT];
        comm_read(made, report);
        comm_explain(parent, "%s", report);
    }
    if (r < 0)
        return r;
    return q ? feed_hear(q, parent, seq) : -ENOMEM;
}

int feed_create(struct tutti_comm *parent, uint32_t site, uint32_t writer, uint64_t room,
                unsigned flags, uint64_t start, struct tutti_queue **queue)
{
    struct tutti_comm *made;
    *queue = NULL;
    int r = comm_split(parent, site, 0, 0, &made);
    if (r < 0)
        return r;
    struct tutti_queue *q = feed_new(made, writer, room, flags, start);
    r = feed_meet(q, made, parent, site);
    if (r < 0) {
        feed_free(q);
        comm_drop(made);
        return r;
    }
    struct watch *w = &made->watch;
    q->interrupt = w->interrupt;
    q->interrupt_arg = w->interrupt_arg;
    w->interrupt = NULL;                             /* ends a call here, and not the comm */
    w->warn_ns = w->me == writer ? w->warn_ns : -1;  /* a reader that idles is as it should be */
    feed_known(made, q);
    *queue = q;
    return 0;
}
