/* Given data is in host memory before the arrival. Taken data goes to the device when the algorithm
 * is done, as the operation's last step (coll_device_complete). Each of the two copies takes some
 * 10 us, beside a few us for the operation. The algorithm `same` takes any size: above what is
 * registered, it goes through plain memory in pieces, so that deaths and deadlines are seen in
 * between. */
#include "gpu/host_copy.h"

#include "gpu/streams.h"

#include <errno.h>
#include <stdlib.h>

enum { APART = 64, PIECE = BOUNCE_PINNED_MOST };

static size_t apart(size_t bytes) { return (bytes + APART - 1) / APART * APART; }

static size_t host_copy_room(const struct device_buffer *all, uint32_t n)
{
    size_t sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += device_is(&all[i]) ? apart(all[i].bytes) : 0;
    return sum;
}

/* The address of buffer i's copy. A buffer of the host needs none: its own address. */
static void *host_copy_copy_of(const struct device_streams *streams, int side,
                               const struct device_buffer *all, uint32_t i)
{
    if (!device_is(&all[i]) || !all[i].bytes)
        return (void *)(uintptr_t)all[i].at;
    return streams->bounce[side].at + host_copy_room(all, i);
}

static int host_copy_open(struct coll *c)
{
    struct device_call *d = c->gpu.call;
    int r = device_open(c);
    if (r < 0)
        return r;
    r = streams_bounce(d->streams, STREAM_IN, host_copy_room(d->given, d->gives));
    if (r == 0)
        r = streams_bounce(d->streams, STREAM_OUT, host_copy_room(d->taken, d->takes));
    if (r < 0)
        return device_failed(c, r);
    if (c->lists.n && !(d->copies = calloc((size_t)d->gives + d->takes + 1, sizeof *d->copies))) {
        comm_explain(c->comm, "no memory for a list of %u buffers", d->gives + d->takes);
        return -ENOMEM;
    }
    return 0;
}

/* Asks for the next piece when the one before has come. DONE: all have come. */
static int host_copy_fetch(struct coll *c)
{
    struct device_call *d = c->gpu.call;
    for (;;) {
        uint64_t passed = 0;
        int r = device_passed(c, STREAM_IN, &passed);
        if (r < 0)
            return r;
        if (passed < d->pieces)
            return watch_poll(&c->op);
        for (size_t left = PIECE; d->at < d->gives && left;) {
            const struct device_buffer *b = &d->given[d->at];
            size_t some = device_is(b) ? b->bytes - d->at_byte : 0;
            some = some < left ? some : left;
            r = device_copy(c, STREAM_IN,
                            (char *)host_copy_copy_of(d->streams, STREAM_IN, d->given, d->at)
                                + d->at_byte,
                            (const char *)b->at + d->at_byte, some);
            if (r < 0)
                return r;
            left -= some;
            d->at_byte += some;
            if (!device_is(b) || d->at_byte == b->bytes) {
                d->at++;
                d->at_byte = 0;
            }
        }
        if (d->at == d->gives && d->all_asked)
            return DONE;
        d->all_asked = d->at == d->gives;
        r = device_mark(c, STREAM_IN);
        if (r < 0)
            return r;
        d->pieces++;
    }
}

/* From here on the algorithm works on the copies. */
static void host_copy_swap(struct coll *c)
{
    struct device_call *d = c->gpu.call;
    d->caller_send = c->send;
    d->caller_recv = c->recv;
    d->caller_lists = c->lists;
    d->swapped = true;
    if (!c->lists.n) {
        c->send = host_copy_copy_of(d->streams, STREAM_IN, d->given, 0);
        c->recv = host_copy_copy_of(d->streams, STREAM_OUT, d->taken, 0);
        return;
    }
    for (uint32_t i = 0; i < d->gives; i++)
        d->copies[i] = host_copy_copy_of(d->streams, STREAM_IN, d->given, i);
    for (uint32_t i = 0; i < d->takes; i++)
        d->copies[d->gives + i] = host_copy_copy_of(d->streams, STREAM_OUT, d->taken, i);
    c->lists.send = (const void *const *)d->copies;
    c->lists.recv = d->copies + d->gives;
    if (d->gives == 1)                 /* a list's only buffer is also c's own (api/check) */
        c->send = d->copies[0];
    if (d->takes == 1)
        c->recv = d->copies[d->gives];
}

static int host_copy_step(struct op *op)
{
    struct coll *c = (struct coll *)op;
    struct device_call *d = c->gpu.call;
    int r;
    if (d->state == DEVICE_NEW) {
        r = host_copy_open(c);
        if (r < 0)
            return r;
        d->state = DEVICE_ORDERED;
    }
    if (d->state == DEVICE_ORDERED) {
        r = device_ready(c);
        if (r != DONE)
            return r;
        d->state = DEVICE_COPYING;
    }
    if (d->state == DEVICE_COPYING) {
        r = host_copy_fetch(c);
        if (r != DONE)
            return r;
        host_copy_swap(c);
        coll_publish_device(c, 0);
        d->state = DEVICE_READY;
    }
    return coll_one_phase(op);
}

static int host_copy_advance(struct op *op) { return device_advance(op, host_copy_step); }

static int host_copy_place(struct coll *c)
{
    struct device_call *d = c->gpu.call;
    uint64_t passed = 0;
    int r = 0;
    if (d->state == DEVICE_READY) {
        for (uint32_t i = 0; i < d->takes && r == 0; i++)
            if (device_is(&d->taken[i]))
                r = device_copy(c, STREAM_OUT, (void *)(uintptr_t)d->taken[i].at,
                                host_copy_copy_of(d->streams, STREAM_OUT, d->taken, i),
                                d->taken[i].bytes);
        if (r == 0)
            r = device_mark(c, STREAM_OUT);
        d->state = DEVICE_PLACING;
    }
    if (r == 0)
        r = device_passed(c, STREAM_OUT, &passed);
    return r < 0 ? r : passed ? DONE : WAITING;
}

void host_copy_choose(struct coll *c)
{
    c->op.advance = host_copy_advance;
    c->gpu.place = host_copy_place;
}
