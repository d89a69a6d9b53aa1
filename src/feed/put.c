/* The writer's side. A message is copied once, into the ring. Its cost beyond that: a look at the
 * mark of each reader, one at each `asleep`, a full fence; a look at all tails only when the room
 * that was seen last is used up. */
#include "feed/feed.h"

#include "base/copy.h"
#include "watch/death.h"

#include <errno.h>
#include <string.h>

/* Copies the next `bytes` of the message. */
static inline __attribute__((always_inline))
void put_copy(struct feed_put *put, char *to, uint64_t bytes)
{
    while (bytes) {
        size_t n = *put->bytes - put->done;
        n = n < bytes ? n : bytes;
        if (n)
            copy_plain(to, (const char *)*put->part + put->done, n);
        to += n;
        bytes -= n;
        put->done += n;
        if (put->done == *put->bytes) {
            put->part++;
            put->bytes++;
            put->done = 0;
        }
    }
}

/* ---- readers ---- */

static void reader_goes(struct tutti_queue *q, uint32_t p)
{
    q->away[p] = true;
    q->left--;
}

/* One that has closed, or has died where the queue goes on without the dead. */
static __attribute__((noinline, cold))
int reader_gone(struct tutti_queue *q, uint32_t p, const struct feed_call *call)
{
    if (load_acquire64(&q->head->readers[p].tail) != FEED_AWAY) {    /* E98 acquire */
        if (!(q->flags & TUTTI_QUEUE_GO_ON))
            return feed_gone(q, call, p);
        fetch_add32(&q->lost, 1);
    }
    reader_goes(q, p);
    return 0;
}

static inline __attribute__((always_inline))
int readers_look(struct tutti_queue *q, const struct feed_call *call)
{
    struct watch *w = &q->comm->watch;
    for (uint32_t p = 0; p < w->size; p++)
        if (!q->away[p] && !timed_wait_there(w, p) && timed_wait_lost(w, p, SLICE_BRIEF)) {
            int r = reader_gone(q, p, call);
            if (r < 0)
                return r;
        }
    return 0;
}

/* Loads all tails. *about: the reader that is behind most; size: none is. */
static int readers_least(struct tutti_queue *q, const struct feed_call *call, uint32_t *about)
{
    uint32_t size = q->comm->watch.size;
    uint64_t behind = 0;
    *about = size;
    for (uint32_t p = 0; p < size; p++) {
        uint64_t tail = q->away[p] ? q->at
                                   : load_acquire64(&q->head->readers[p].tail);  /* E98 acquire */
        if (tail == FEED_AWAY) {
            reader_goes(q, p);
            continue;
        }
        if (q->at - tail > q->room)
            return feed_damaged(q, call);
        if (q->at - tail > behind) {
            behind = q->at - tail;
            *about = p;
        }
    }
    q->least = q->at - behind;
    return 0;
}

static bool room_is(const struct tutti_queue *q, uint64_t need)
{
    return q->at + need + FEED_STEP - q->least <= q->room;
}

/* No reader's `full` is set. */
static inline void full_over(struct tutti_queue *q)
{
    if (q->full)
        /* relaxed: E114; nothing is read by it */
        store_relaxed64(&q->head->readers[q->full - 1].full, FEED_AWAY);
    q->full = 0;
}

/* Tells reader p, if it waits for a message, that what it holds is the room that the next one
 * lacks. 0, or the tail that stands for that. */
static void full_set(struct tutti_queue *q, uint32_t p, uint64_t tail)
{
    if (q->full != p + 1)
        full_over(q);
    q->full = p + 1;
    store_release64(&q->head->readers[p].full, tail);                /* E114 release */
}

/* Looks how far all have read. */
static __attribute__((noinline))
int room_seek(struct tutti_queue *q, uint64_t need, const struct feed_call *call,
              struct feed_wait *wait)
{
    while (!room_is(q, need)) {
        uint32_t p;
        int r = readers_least(q, call, &p);
        if (r < 0)
            return r;
        if (room_is(q, need))
            break;
        struct feed_reader *reader = &q->head->readers[p];
        bool gone = q->waits && timed_wait_gone(&q->wait, p);        /* E5: before its word */
        uint64_t seen = load_acquire64(&reader->tail);               /* E98 acquire */
        if (seen != q->least)
            continue;
        if (gone) {
            r = reader_gone(q, p, call);
            if (r < 0)
                return r;
            continue;
        }
        full_set(q, p, seen);
        if (call->once)
            return -EAGAIN;
        *wait = (struct feed_wait){ &reader->tail, &reader->awaited, seen, p, &reader->tail,
                                    q->at + need + FEED_STEP - q->room, "for room, for a get" };
        return FEED_WAITS;
    }
    return 0;
}

/* 0: `need` bytes, and those of the next stamp, are free. */
static inline __attribute__((always_inline))
int room_find(struct tutti_queue *q, uint64_t need, const struct feed_call *call,
              struct feed_wait *wait)
{
    int r = room_is(q, need) ? 0 : room_seek(q, need, call, wait);
    if (r)
        return r;
    full_over(q);
    feed_came(q);
    return 0;
}

/* ---- records ---- */

static void stamp_clear(struct tutti_queue *q, uint64_t at)
{
    store_relaxed64(&feed_record_at(q, at)->stamp, 0);               /* relaxed: E96 publishes it */
    q->clear = at + FEED_STEP;
}

/* One more stamp than a reader can see, if that is free: a small message that comes next then
   stores to one line before its stamp, not to two. Measured: 87 ns instead of 98. */
static void stamp_clear_ahead(struct tutti_queue *q)
{
    if (q->clear == q->at + FEED_STEP && q->clear + FEED_STEP - q->least <= q->room)
        stamp_clear(q, q->clear);
}

static inline __attribute__((always_inline))
void record_set(struct tutti_queue *q, enum feed_kind kind, uint64_t left, uint64_t bytes)
{
    struct feed_record *record = feed_record_at(q, q->at);
    q->at += bytes;
    if (kind != FEED_END && q->at >= q->clear)
        stamp_clear(q, q->at);
    record->what = feed_what(kind, left);
    store_release64(&record->stamp, q->at);                          /* E96 release */
}

/* Everything so far can be read: wakes who sleeps for it. */
static inline void head_set(struct tutti_queue *q)
{
    struct watch *w = &q->comm->watch;
    bool sleeps = false;
    store_fence64(&q->head->head, q->at);                            /* E97 release, E97 fence */
    for (uint32_t p = 0; p < w->size && !sleeps; p++)
        /* relaxed: E97, ordered by the fence */
        sleeps = !q->away[p] && load_relaxed32(&q->head->readers[p].asleep);
    if (!sleeps)
        return;
    store_relaxed64(&q->head->woke, clock_tick());                   /* relaxed: a hint */
    feed_wake(q, &q->head->head);
}

static inline __attribute__((always_inline))
int record_put(struct tutti_queue *q, struct feed_put *put, enum feed_kind kind,
               const struct feed_call *call, struct feed_wait *wait)
{
    uint64_t left = put->left, most = kind == FEED_WHOLE ? q->whole : q->piece;
    uint64_t data = left < most ? left : most, bytes = feed_record_bytes(data);
    uint64_t end = q->room - (q->at & (q->room - 1)), fill = bytes > end ? end : 0;
    int r = room_find(q, fill + bytes, call, wait);
    if (r)
        return r;
    if (fill)
        record_set(q, FEED_FILL, 0, fill);
    put_copy(put, feed_record_at(q, q->at)->data, data);
    record_set(q, kind, left, bytes);
    head_set(q);
    stamp_clear_ahead(q);
    put->left -= data;
    return 0;
}

/* As readers_look, and -ESHUTDOWN where nobody reads any more. */
static inline __attribute__((always_inline))
int readers_live(struct tutti_queue *q, const struct feed_call *call)
{
    int r = readers_look(q, call);
    return r == 0 && !q->left && q->comm->watch.size > 1 ? -ESHUTDOWN : r;
}

int feed_readers(struct tutti_queue *q, const struct feed_call *call)
{
    uint32_t about;
    int r = readers_live(q, call);
    return r < 0 ? r : readers_least(q, call, &about);
}

/* A record that says where the message lies. */
static __attribute__((noinline))
int place_put(struct tutti_queue *q, struct feed_put *put, const struct feed_call *call,
              struct feed_wait *wait)
{
    uint64_t place = (uint64_t)(put->loan->at - q->comm->world->arena.base);
    int r = room_find(q, FEED_STEP, call, wait);
    if (r)
        return r;
    memcpy(feed_record_at(q, q->at)->data, &place, sizeof place);
    record_set(q, FEED_LENT, put->all, FEED_STEP);
    head_set(q);
    put->loan->state = LOAN_PUT;
    put->loan->end = q->at;
    return 0;
}

/* A long message is copied into a loan, if there is memory for one. */
static int loan_fill(struct tutti_queue *q, struct feed_put *put, const struct feed_call *call)
{
    int r = feed_loan_take(q, put->all, &put->loan, call);
    if (r == 0)
        put_copy(put, put->loan->at, put->all);
    put->own = r == 0;
    return r == -ENOSPC || r == -ENOMEM ? 0 : r;
}

/* Of a message that lies in a loan, or is longer than a record. */
static __attribute__((noinline))
int long_put(struct tutti_queue *q, struct feed_put *put, const struct feed_call *call,
             struct feed_wait *wait)
{
    uint32_t about;
    int r = 0;
    if (!put->begun && put->loan)
        r = readers_least(q, call, &about);
    else if (!put->begun && put->all >= FEED_LENT_FROM)
        r = loan_fill(q, put, call);
    if (r)
        return r;
    put->begun = true;
    if (put->loan)
        return place_put(q, put, call, wait);
    /* given up in the middle, it stays unfinished: the next message begins with another kind */
    while (put->left && r == 0)
        r = record_put(q, put, put->left == put->all ? FEED_FIRST : FEED_MORE, call, wait);
    return r;
}

static inline __attribute__((always_inline))
int put_on(struct tutti_queue *q, struct feed_put *put, const struct feed_call *call,
           struct feed_wait *wait)
{
    int r = put->begun ? 0 : readers_live(q, call);
    if (r)
        return r;
    if (put->loan || put->all > q->whole)
        return long_put(q, put, call, wait);
    put->begun = true;
    return record_put(q, put, FEED_WHOLE, call, wait);
}

void feed_put_fails(struct tutti_queue *q, struct feed_put *put, int result)
{
    if (put->loan)
        put->loan->state = put->own ? LOAN_IDLE : LOAN_OUT;
    if (result != -EAGAIN)                           /* else it may be tried again soon */
        full_over(q);
}

static inline __attribute__((always_inline))
int put_step(struct tutti_queue *q, struct feed_put *put, const struct feed_call *call,
             struct feed_wait *wait)
{
    int r = put_on(q, put, call, wait);
    if (r == 0) {
        feed_count(&q->messages, 1);
        feed_count(&q->bytes, put->all);
    } else if (r != FEED_WAITS)
        feed_put_fails(q, put, r);
    return r;
}

int feed_put_step(struct tutti_queue *q, struct feed_put *put, const struct feed_call *call,
                  struct feed_wait *wait)
{
    return put_step(q, put, call, wait);
}

static __attribute__((noinline))
int put_waits(struct tutti_queue *q, struct feed_put *put, const struct feed_call *call,
              struct feed_wait *wait)
{
    int r = FEED_WAITS;
    while (r == FEED_WAITS) {
        r = feed_wait(q, call, wait);
        if (r < 0)
            feed_put_fails(q, put, r);
        else
            r = feed_put_step(q, put, call, wait);
    }
    return r;
}

/* The most frequent case, without a wait, is a straight line. */
int feed_put(struct tutti_queue *q, struct feed_put *put, const struct feed_call *call)
{
    struct feed_wait wait;
    int r = put_step(q, put, call, &wait);
    return r == FEED_WAITS ? put_waits(q, put, call, &wait) : r;
}

void feed_end(struct tutti_queue *q)
{
    record_set(q, FEED_END, 0, FEED_STEP);
    head_set(q);
}
