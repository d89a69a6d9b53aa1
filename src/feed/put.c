/* The writer's side. A message is copied once, into the ring. Its cost beyond that: a look at the
 * mark of each reader, one at each `asleep`, a full fence; a look at all tails only when the room
 * that was seen last is used up. */
#include "feed/feed.h"

#include "watch/death.h"

#include <errno.h>
#include <string.h>

/* What is left to be copied of a message. */
struct cursor { const void *const *part; const size_t *bytes; size_t done; };

static void cursor_copy(struct cursor *c, char *to, uint64_t bytes)
{
    while (bytes) {
        size_t n = *c->bytes - c->done;
        n = n < bytes ? n : bytes;
        if (n)
            memcpy(to, (const char *)*c->part + c->done, n);
        to += n;
        bytes -= n;
        c->done += n;
        if (c->done == *c->bytes) {
            c->part++;
            c->bytes++;
            c->done = 0;
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
static int reader_gone(struct tutti_queue *q, uint32_t p, const struct feed_call *call)
{
    if (load_acquire64(&q->head->readers[p].tail) != FEED_AWAY) {    /* E98 acquire */
        if (!(q->flags & TUTTI_QUEUE_GO_ON))
            return feed_gone(q, call, p);
        fetch_add32(&q->lost, 1);
    }
    reader_goes(q, p);
    return 0;
}

static int readers_look(struct tutti_queue *q, const struct feed_call *call)
{
    struct watch *w = &q->comm->watch;
    for (uint32_t p = 0; p < w->size; p++)
        if (!q->away[p] && timed_wait_lost(w, p, SLICE_BRIEF)) {
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

/* Waits until `need` bytes, and those of the next stamp, are free. */
static int room_await(struct tutti_queue *q, uint64_t need, const struct feed_call *call)
{
    while (!room_is(q, need)) {
        uint32_t p;
        int r = readers_least(q, call, &p);
        if (r < 0)
            return r;
        if (room_is(q, need))
            break;
        if (call->once)
            return -EAGAIN;
        struct feed_reader *reader = &q->head->readers[p];
        bool gone = q->waits && timed_wait_gone(&q->wait, p);        /* E5: before its word */
        uint64_t seen = load_acquire64(&reader->tail);               /* E98 acquire */
        if (seen != q->least)
            continue;
        if (gone)
            r = reader_gone(q, p, call);
        else {
            store_release64(&reader->full, seen);                    /* E114 release */
            uint64_t value = q->at + need + FEED_STEP - q->room;
            const struct feed_wait wait = { &reader->tail, &reader->awaited, seen, p,
                                            &reader->tail, value, "for room, for a get" };
            r = feed_wait(q, call, &wait);
        }
        store_relaxed64(&reader->full, FEED_AWAY);       /* relaxed: E114; nothing is read by it */
        if (r < 0)
            return r;
    }
    feed_came(q);
    return 0;
}

/* ---- records ---- */

static void record_set(struct tutti_queue *q, enum feed_kind kind, uint64_t left, uint64_t bytes)
{
    struct feed_record *record = feed_record_at(q, q->at);
    q->at += bytes;
    if (kind != FEED_END)
        store_relaxed64(&feed_record_at(q, q->at)->stamp, 0);        /* relaxed: E96 publishes it */
    record->what = feed_what(kind, left);
    store_release64(&record->stamp, q->at);                          /* E96 release */
}

/* Everything so far can be read: wakes who sleeps for it. */
static void head_set(struct tutti_queue *q)
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

static int record_put(struct tutti_queue *q, struct cursor *c, enum feed_kind kind, uint64_t left,
                      const struct feed_call *call)
{
    uint64_t most = kind == FEED_WHOLE ? q->whole : q->piece;
    uint64_t data = left < most ? left : most, bytes = feed_record_bytes(data);
    uint64_t end = q->room - (q->at & (q->room - 1)), fill = bytes > end ? end : 0;
    int r = room_await(q, fill + bytes, call);
    if (r < 0)
        return r;
    if (fill)
        record_set(q, FEED_FILL, 0, fill);
    cursor_copy(c, feed_record_at(q, q->at)->data, data);
    record_set(q, kind, left, bytes);
    head_set(q);
    return 0;
}

/* As readers_look, and -ESHUTDOWN where nobody reads any more. */
static int readers_live(struct tutti_queue *q, const struct feed_call *call)
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

int feed_put_place(struct tutti_queue *q, uint64_t place, uint64_t bytes,
                   const struct feed_call *call)
{
    int r = room_await(q, FEED_STEP, call);
    if (r < 0)
        return r;
    memcpy(feed_record_at(q, q->at)->data, &place, sizeof place);
    record_set(q, FEED_LENT, bytes, FEED_STEP);
    head_set(q);
    feed_count(&q->messages, 1);
    feed_count(&q->bytes, bytes);
    return 0;
}

/* -ENOSPC, -ENOMEM: there is no memory for a loan. */
static int put_by_loan(struct tutti_queue *q, struct cursor c, uint64_t bytes,
                       const struct feed_call *call)
{
    void *block;
    int r = feed_loan_take(q, bytes, &block, call);
    if (r < 0)
        return r;
    cursor_copy(&c, block, bytes);
    r = feed_loan_put(q, block, bytes, call);
    if (r < 0)
        feed_loan_drop(q, block);
    return r;
}

int feed_put(struct tutti_queue *q, const void *const part[], const size_t bytes[], int parts,
             const struct feed_call *call)
{
    struct cursor c = { part, bytes, 0 };
    uint64_t all = 0;
    for (int i = 0; i < parts; i++)
        all += bytes[i];
    int r = readers_live(q, call);
    if (r < 0)
        return r;
    if (all > q->whole && all >= FEED_LENT_FROM) {
        r = put_by_loan(q, c, all, call);
        if (r != -ENOSPC && r != -ENOMEM)
            return r;
        r = 0;
    }
    if (all <= q->whole)
        r = record_put(q, &c, FEED_WHOLE, all, call);
    /* given up in the middle, it stays unfinished: the next message begins with another kind */
    for (uint64_t left = all; all > q->whole && left && r == 0;) {
        r = record_put(q, &c, left == all ? FEED_FIRST : FEED_MORE, left, call);
        left -= left < q->piece ? left : q->piece;
    }
    if (r == 0) {
        feed_count(&q->messages, 1);
        feed_count(&q->bytes, all);
    }
    return r;
}

void feed_end(struct tutti_queue *q)
{
    record_set(q, FEED_END, 0, FEED_STEP);
    head_set(q);
}
