/* The reader's side. A message that is one record is copied out of the ring or shown where it lies;
 * one of several pieces is put together in private memory. Cost: a load of the record's line, a
 * store with a fence for the writer. What the reader holds keeps its room from the writer: so what
 * would hold more than some of the ring is copied. */
#include "feed/feed.h"

#include "base/copy.h"
#include "base/error.h"
#include "os/caller.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The next message: a record of the ring, or q->part. */
struct front { const char *data; uint64_t bytes, end; bool part; };

/* ---- what has been read ---- */

static inline void tail_set(struct tutti_queue *q, uint64_t tail)
{
    struct feed_reader *mine = &q->head->readers[q->comm->watch.me];
    store_fence64(&mine->tail, tail);               /* E98 release, E99 release, E99 fence */
    if (load_relaxed32(&mine->awaited))             /* relaxed: E99, ordered by the fence */
        feed_wake(q, &mine->tail);
}

static __attribute__((noinline))
void past_holds(struct tutti_queue *q, uint64_t end)
{
    pthread_mutex_lock(&q->lock);
    q->at = end;
    if (!load_acquire32(&q->holds))
        tail_set(q, end);
    pthread_mutex_unlock(&q->lock);
}

/* Goes past a record. Without holds no other thread is here. */
static inline void get_past(struct tutti_queue *q, uint64_t end)
{
    if (load_acquire32(&q->holds)) {
        past_holds(q, end);
        return;
    }
    q->at = end;
    tail_set(q, end);
}

/* Holds the record from q->at on. The hold's number; 0: there are too many, or too much. */
static uint64_t hold_take(struct tutti_queue *q, uint64_t end)
{
    uint64_t number = 0;
    pthread_mutex_lock(&q->lock);
    uint32_t n = load_acquire32(&q->holds);
    uint64_t since = n ? q->hold[q->first % FEED_HOLDS].at : q->at;
    if (n < FEED_HOLDS && end - since <= q->room / 16 * 7) {
        number = q->first + n;
        q->hold[number % FEED_HOLDS] = (struct feed_hold){ q->at, false };
        store_release32(&q->holds, n + 1);
        q->at = end;
    }
    pthread_mutex_unlock(&q->lock);
    return number;
}

static void hold_give(struct tutti_queue *q, uint64_t number)
{
    pthread_mutex_lock(&q->lock);
    uint32_t n = load_acquire32(&q->holds);
    if (number - q->first < n) {
        q->hold[number % FEED_HOLDS].over = true;
        bool oldest = number == q->first;
        while (n && q->hold[q->first % FEED_HOLDS].over) {
            q->first++;
            n--;
        }
        if (oldest)
            tail_set(q, n ? q->hold[q->first % FEED_HOLDS].at
                         : load_acquire32(&q->closed) ? FEED_AWAY           /* E100 acquire */
                                                      : q->at);
        store_release32(&q->holds, n);
    }
    pthread_mutex_unlock(&q->lock);
}

void feed_away(struct tutti_queue *q)
{
    pthread_mutex_lock(&q->lock);
    if (!load_acquire32(&q->holds))
        tail_set(q, FEED_AWAY);
    pthread_mutex_unlock(&q->lock);
}

/* ---- what comes ---- */

/* The writer lacks room that this rank holds, and this rank waits for the writer. */
static int hold_stuck(struct tutti_queue *q, const struct feed_call *call)
{
    CALLER_KEPT;
    char room[REPORT_TEXT];
    struct text t = TEXT_IN(room);
    feed_report(q, call, &t);
    text_add(&t,
             "this rank holds %u messages that it has looked at, and the writer, rank %u, has no "
             "room but theirs; release the oldest\n",
             load_acquire32(&q->holds), q->writer);
    comm_show(q->comm, &t);
    return -EDEADLK;
}

/* 0: a record is there. */
static __attribute__((noinline))
int record_look(struct tutti_queue *q, const struct feed_record *record,
                const struct feed_call *call, struct feed_wait *wait)
{
    struct watch *w = &q->comm->watch;
    if (call->once)
        return -EAGAIN;
    if (!call->behind && feed_glance(q, &record->stamp))
        return 0;
    bool gone = q->waits ? timed_wait_gone(&q->wait, q->writer)      /* E5: before its words */
                         : timed_wait_lost(w, q->writer, SLICE_BRIEF);
    uint64_t seen = load_acquire64(&q->head->head);                  /* E97 acquire */
    if (load_acquire64(&record->stamp))                              /* E96 acquire */
        return 0;
    if (gone)
        return feed_gone(q, call, q->writer);
    const struct feed_reader *mine = &q->head->readers[w->me];
    uint64_t tail = load_relaxed64(&mine->tail);     /* relaxed: this rank's own, only moves on */
    if (load_acquire32(&q->holds) && load_acquire64(&mine->full) == tail)    /* E114 acquire */
        return load_acquire64(&record->stamp) ? 0 : hold_stuck(q, call);     /* E96 acquire */
    *wait = (struct feed_wait){ &q->head->head, &q->head->readers[w->me].asleep, seen, q->writer,
                                &record->stamp, 1, "for a message, for a put" };
    return FEED_WAITS;
}

static void part_drop(struct tutti_queue *q)
{
    free(q->part);
    q->part = NULL;
    q->part_got = q->part_bytes = 0;
}

/* A piece of `left` bytes, with all that come after it, of a message. */
static int part_add(struct tutti_queue *q, const struct feed_record *record, enum feed_kind kind,
                    uint64_t left, uint64_t end, const struct feed_call *call)
{
    CALLER_KEPT;
    uint64_t data = left < q->piece ? left : q->piece;
    if (kind == FEED_FIRST) {
        part_drop(q);
        if (!(q->part = malloc(left)))
            return -ENOMEM;
        q->part_bytes = left;
    }
    if (!q->part || q->part_bytes - q->part_got != left || data + FEED_RECORD > end - q->at)
        return feed_damaged(q, call);
    copy_plain(q->part + q->part_got, record->data, data);
    q->part_got += data;
    get_past(q, end);
    return 0;
}

/* The message lies where the record says. */
static int lent_find(struct tutti_queue *q, const struct feed_record *record, uint64_t bytes,
                     uint64_t end, struct front *f)
{
    const struct arena *arena = &q->comm->world->arena;
    uint64_t place;
    memcpy(&place, record->data, sizeof place);
    if (place < arena->header->spans_at || place > arena->bytes || bytes > arena->bytes - place)
        return DAMAGED;
    part_drop(q);
    *f = (struct front){ arena->base + place, bytes, end, false };
    return 0;
}

/* A record that is no message. 0: look on; or *f is one that lies elsewhere. */
static __attribute__((noinline))
int record_odd(struct tutti_queue *q, const struct feed_record *record, uint64_t end,
               struct front *f, const struct feed_call *call)
{
    uint64_t left = record->what >> FEED_KIND_BITS;
    enum feed_kind kind = (enum feed_kind)(record->what & ((1 << FEED_KIND_BITS) - 1));
    if (kind == FEED_END)
        return -ESHUTDOWN;
    if (kind == FEED_LENT)
        return lent_find(q, record, left, end, f) < 0 ? feed_damaged(q, call) : 0;
    if (kind != FEED_FILL)
        return part_add(q, record, kind, left, end, call);
    get_past(q, end);
    return 0;
}

/* 0: a whole message is there. */
static inline __attribute__((always_inline))
int front_find(struct tutti_queue *q, struct front *f, const struct feed_call *call,
               struct feed_wait *wait)
{
    while (!q->part || q->part_got < q->part_bytes) {
        const struct feed_record *record = feed_record_at(q, q->at);
        uint64_t end = load_acquire64(&record->stamp);               /* E96 acquire */
        if (!end) {
            int r = record_look(q, record, call, wait);
            if (r)
                return r;
            continue;
        }
        feed_came(q);
        uint64_t bytes = end - q->at, left = record->what >> FEED_KIND_BITS;
        enum feed_kind kind = (enum feed_kind)(record->what & ((1 << FEED_KIND_BITS) - 1));
        bool whole = kind == FEED_WHOLE;
        if (!bytes || bytes > q->room / 4 || bytes % FEED_STEP
            || (whole && left > bytes - FEED_RECORD))
            return feed_damaged(q, call);
        if (whole) {
            if (q->part)
                part_drop(q);
            *f = (struct front){ record->data, left, end, false };
            return 0;
        }
        struct front elsewhere = { NULL, 0, 0, false };
        int r = record_odd(q, record, end, &elsewhere, call);
        *f = elsewhere;
        if (r < 0 || elsewhere.data)
            return r;
    }
    *f = (struct front){ q->part, q->part_bytes, 0, true };
    return 0;
}

static inline void front_over(struct tutti_queue *q, const struct front *f)
{
    feed_count(&q->messages, 1);
    feed_count(&q->bytes, f->bytes);
}

static inline int front_copy(struct tutti_queue *q, const struct front *f, void *buf, size_t *bytes)
{
    bool fits = f->bytes <= *bytes;
    *bytes = f->bytes;
    if (!fits)
        return -EMSGSIZE;
    if (f->bytes)
        copy_plain(buf, f->data, f->bytes);
    front_over(q, f);
    if (f->part)
        part_drop(q);
    else
        get_past(q, f->end);
    return 0;
}

static __attribute__((noinline))
int front_show(struct tutti_queue *q, const struct front *f, tutti_queue_message *message)
{
    *message = (tutti_queue_message){ .data = f->data, .bytes = f->bytes };
    if (f->part) {
        q->part = NULL;
        part_drop(q);
    } else if (!(message->hold = hold_take(q, f->end))) {
        char *copy = malloc(f->bytes ? f->bytes : 1);
        message->data = copy;
        if (!copy)
            return -ENOMEM;
        copy_plain(copy, f->data, f->bytes);
        get_past(q, f->end);
    }
    front_over(q, f);
    return 0;
}

static inline __attribute__((always_inline))
int get_step(struct tutti_queue *q, const struct feed_get *get, const struct feed_call *call,
             struct feed_wait *wait)
{
    struct front f = { NULL, 0, 0, false };
    int r = front_find(q, &f, call, wait);
    if (r)
        return r;
    if (!get->message)
        return front_copy(q, &f, get->buf, get->bytes);
    const struct front shown = f;                    /* else f is not in registers */
    return front_show(q, &shown, get->message);
}

int feed_get_step(struct tutti_queue *q, const struct feed_get *get, const struct feed_call *call,
                  struct feed_wait *wait)
{
    return get_step(q, get, call, wait);
}

static __attribute__((noinline))
int get_waits(struct tutti_queue *q, const struct feed_get *get, const struct feed_call *call,
              struct feed_wait *wait)
{
    int r = FEED_WAITS;
    while (r == FEED_WAITS) {
        r = feed_wait(q, call, wait);
        if (r == 0)
            r = feed_get_step(q, get, call, wait);
    }
    return r;
}

/* The most frequent case, without a sleep, is a straight line. */
int feed_get(struct tutti_queue *q, const struct feed_get *get, const struct feed_call *call)
{
    struct feed_wait wait;
    int r = get_step(q, get, call, &wait);
    return r == FEED_WAITS ? get_waits(q, get, call, &wait) : r;
}

void feed_release(struct tutti_queue *q, tutti_queue_message *message)
{
    if (message->hold)
        hold_give(q, message->hold);
    else
        free((void *)(uintptr_t)message->data);
    *message = (tutti_queue_message){ .data = NULL };
}
