/* Is what a new operation reads and writes ordered after what others write and read there? Two ways
 * to find out. Within a process by knowledge: an operation knows those that a stream, an event or
 * the waiting host has put before it; a conflict with one it does not know is a race, whatever the
 * timing was this time. All threads of the host count as one that knows what any of them has waited
 * for: they order themselves by means that are not seen here.
 * Between processes by what is under way: who writes or reads which bytes stands in the memory's
 * header from the call until the operation has ended; a conflict with another process's entry is a
 * race unless an event of that process came between. */
#include "fake/fake.h"

#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static void join_seen(uint64_t *into, const uint64_t *other)
{
    for (int i = 0; i < STREAMS_MOST; i++)
        if (into[i] < other[i])
            into[i] = other[i];
}

static uint64_t *peer_seen(struct order *order, int pid)
{
    for (int i = 0; i < PEERS_MOST; i++) {
        if (!order->peer[i].pid)
            order->peer[i].pid = pid;
        if (order->peer[i].pid == pid)
            return order->peer[i].seen;
    }
    return NULL;
}

void order_join(struct order *into, const struct order *other)
{
    join_seen(into->seen, other->seen);
    for (int i = 0; i < PEERS_MOST && other->peer[i].pid; i++) {
        uint64_t *seen = peer_seen(into, other->peer[i].pid);
        if (seen)
            join_seen(seen, other->peer[i].seen);
    }
}

void order_export(struct event_share *share, struct CUstream_st *stream, const struct op *op)
{
    share->pid = fake.pid;
    share->stream = stream->id;
    share->op = op->seq;
    share->order = stream->order;
}

void order_import(struct order *order, const struct event_share *share)
{
    if (share->pid == fake.pid) {
        join_seen(order->seen, share->order.seen);
        return;
    }
    uint64_t *seen = peer_seen(order, share->pid);
    if (seen)
        join_seen(seen, share->order.seen);
}

/* A word of 64 bits; its low half is slept on. */
void share_wake(struct event_share *share)
{
    syscall(SYS_futex, &share->done, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static bool conflict(uint64_t begin, uint64_t end, bool write, const struct access *a)
{
    return (write || a->write) && a->begin < end && begin < a->end;
}

static bool ends_before(const struct order *order, const struct access *a)
{
    return order->seen[a->stream] >= a->op;
}

/* Forgets what nobody can race with any more: the host knows its end, or the new write
 * lies over it. */
static void prune(struct range *range, const struct order *order, const struct touch *t)
{
    int kept = 0;
    for (int i = 0; i < range->accesses_n; i++) {
        const struct access *a = &range->accesses[i];
        bool covered = ends_before(order, a) && (t->write || !a->write) && t->begin <= a->begin
            && a->end <= t->end;
        if (!ends_before(&fake.host, a) && !(covered && fake.stream[a->stream]->done >= a->op))
            range->accesses[kept++] = *a;
    }
    range->accesses_n = kept;
}

static void remember(struct range *range, const struct access *a)
{
    if (range->accesses_n == range->accesses_room) {
        range->accesses_room = range->accesses_room ? 2 * range->accesses_room : 16;
        range->accesses = realloc(range->accesses, (size_t)range->accesses_room * sizeof *a);
        if (!range->accesses)
            abort();
    }
    range->accesses[range->accesses_n++] = *a;
}

static void against_others(struct CUstream_st *stream, const struct op *op, const struct touch *t,
                           struct header *h)
{
    for (int i = 0; i < PENDING_MOST; i++) {
        struct pending *p = &h->pending[i];
        if (atomic_load(&p->state) != 2 || p->pid == fake.pid || (!p->write && !t->write)
            || p->begin >= t->end || t->begin >= p->end)
            continue;
        int pid = p->pid, other = p->stream, writes = p->write;
        uint64_t number = p->op;
        const uint64_t *seen = peer_seen(&stream->order, pid);
        if ((seen && seen[other] >= number) || !fake_process_lives(pid)
            || atomic_load(&p->state) != 2 || p->op != number)
            continue;
        fake_misuse("missing order between processes",
                    "%s %s what process %d still %s, with no event between", op->call,
                    t->write ? "writes" : "reads", pid, writes ? "writes" : "reads");
    }
}

static struct pending *announce(const struct CUstream_st *stream, const struct op *op,
                                const struct touch *t, struct header *h)
{
    for (int i = 0; i < PENDING_MOST; i++) {
        struct pending *p = &h->pending[i];
        int state = 0;
        if (atomic_load(&p->state) == 0 && atomic_compare_exchange_strong(&p->state, &state, 1)) {
            p->pid = fake.pid;
            p->stream = stream->id;
            p->write = t->write;
            p->op = op->seq;
            p->begin = t->begin;
            p->end = t->end;
            atomic_store(&p->state, 2);
            return p;
        }
    }
    return NULL;
}

void order_touch(struct CUstream_st *stream, struct op *op, struct touch *t)
{
    struct range *range = t->range;
    for (int i = 0; i < range->accesses_n; i++) {
        const struct access *a = &range->accesses[i];
        if (a->stream != stream->id && conflict(t->begin, t->end, t->write, a)
            && !ends_before(&stream->order, a))
            fake_misuse("missing order",
                        "%s in stream %d %s what %s in stream %d %s, with no event between",
                        op->call, stream->id, t->write ? "writes" : "reads", a->call, a->stream,
                        a->write ? "writes" : "reads");
    }
    prune(range, &stream->order, t);
    remember(range,
             &(struct access){ .stream = stream->id,
                               .op = op->seq,
                               .begin = t->begin,
                               .end = t->end,
                               .write = t->write,
                               .call = op->call });
    if (range->memory) {
        t->pending = announce(stream, op, t, range->memory->header);
        against_others(stream, op, t, range->memory->header);
    }
}

void order_done(struct op *op)
{
    for (int i = 0; i < op->touches; i++)
        if (op->touch[i].pending)
            atomic_store(&op->touch[i].pending->state, 0);
}

bool order_busy(const struct range *range, uint64_t begin, uint64_t end, bool write)
{
    for (int i = 0; i < range->accesses_n; i++) {
        const struct access *a = &range->accesses[i];
        if (conflict(begin, end, write, a) && fake.stream[a->stream]->done < a->op)
            return true;
    }
    return false;
}
