/* The driver is asked once for each allocation in which a call's buffers lie: whose memory is it? A
 * driver that cannot answer any more, because a kernel of this process has failed, must not break
 * host memory, too: memory that the CPU can read then counts as host memory. */
#define TUTTI_NO_SITES
#include "api/device.h"

#include "engine/guard.h"
#include "coll/parts.h"
#include "gpu/context.h"
#include "gpu/road.h"
#include "os/memory.h"

#include <stdlib.h>
#include <string.h>

static bool in_buffer(const struct driver_pointer *pointer, const void *at)
{
    uint64_t address = (uint64_t)(uintptr_t)at;
    return pointer->bytes && address >= pointer->base && address - pointer->base < pointer->bytes;
}

/* Sets b->pointer: 0. Else -errno and why: the driver cannot answer and the CPU cannot read the
   memory, or nobody can reach it. The CPU's access is checked (0.3 us) only if CUDA has begun: else
   former device memory would count as host memory, and the CPU would read it. */
static int buffer_ask(struct device_buffer *b, const struct device_buffer *before, struct text *why)
{
    if (before && device_is(before) && in_buffer(&before->pointer, b->at)) {
        b->pointer = before->pointer;
        b->pointer.address += (uint64_t)((uintptr_t)b->at - (uintptr_t)before->at);
        return 0;
    }
    int r = driver_pointer(b->at, &b->pointer, why);
    if (r == 0 && b->pointer.memory == DRIVER_HOST && driver_forked() && !memory_readable(b->at)) {
        text_add(why,
                 "memory that this process cannot reach: CUDA had begun before it forked off, and "
                 "device memory does not survive fork");
        return -EINVAL;
    }
    if (r == 0 && b->pointer.memory == DRIVER_HOST && driver_begun() && !memory_readable(b->at)) {
        text_add(why,
                 "memory that neither the CPU nor a GPU of this process can reach: has it been "
                 "freed?");
        return -EINVAL;
    }
    if (r == 0 || !memory_readable(b->at))
        return r;
    b->pointer = (struct driver_pointer){ .memory = DRIVER_HOST, .device = -1 };
    text_clear(why);
    return 0;
}

/* ---- the buffers of a call ---- */

static int even_buffers(struct tutti_comm *comm, const struct coll *c, enum kind kind,
                        struct device_call *d)
{
    struct extent extent = parts_extent(comm, c, kind);
    d->given = &d->send;
    d->taken = &d->recv;
    d->gives = d->takes = 1;
    d->send = (struct device_buffer){ .at = c->send, .bytes = extent.sent };
    d->recv = (struct device_buffer){ .at = c->recv, .bytes = extent.taken };
    return 0;
}

static int list_buffers(struct tutti_comm *comm, const struct coll *c, enum kind kind,
                        uint32_t site, struct device_call *d)
{
    struct sides s = parts_sides(comm, c, kind);
    bool folds = parts_of(kind) & PARTS_FOLD;
    d->given = calloc((size_t)s.gives + s.takes + 1, sizeof *d->given);
    if (!d->given)
        return guard_fail(comm, kind, site, -ENOMEM, "no memory for a list of %u buffers",
                          s.gives + s.takes);
    d->taken = d->given + s.gives;
    d->gives = s.gives;
    d->takes = s.takes;
    for (uint32_t i = 0; i < s.gives; i++)
        d->given[i] = (struct device_buffer){
            .at = c->lists.send[i], .bytes = c->lists.send_counts[i] * c->width
        };
    for (uint32_t i = 0; i < s.takes; i++)
        d->taken[i] = (struct device_buffer){
            .at = c->lists.recv[i],
            .bytes = c->lists.recv_counts[s.takes == 1 && folds ? comm->watch.me : i] * c->width
        };
    return 0;
}

/* Asks for n buffers. *some: a buffer on the device on which all must lie; NULL: none yet. 0;
 * refused; or d->error: the driver has failed. */
static int buffers_ask(struct tutti_comm *comm, enum kind kind, uint32_t site,
                       struct device_call *d, struct device_buffer *all, uint32_t n,
                       const char *what, const struct device_buffer **some)
{
    const struct device_buffer *before = NULL;
    for (uint32_t i = 0; i < n; i++) {
        struct device_buffer *b = &all[i];
        struct text why = TEXT_IN(d->words);
        b->pointer = (struct driver_pointer){ .memory = DRIVER_HOST, .device = -1 };
        if (!b->bytes)
            continue;
        text_clear(&why);
        int r = buffer_ask(b, before, &why);
        if (r == -EINVAL)
            return guard_refuse(comm, kind, site, "the %s buffer is %s", what, d->words);
        if (r < 0) {
            d->error = -EIO;
            return 0;
        }
        if (!device_is(b))
            continue;
        before = b;
        uint64_t behind = b->pointer.base + b->pointer.bytes - (uint64_t)(uintptr_t)b->at;
        if (in_buffer(&b->pointer, b->at) && b->bytes > behind)
            return guard_refuse(comm, kind, site,
                                "the %s buffer ends %llu bytes from where its %llu bytes begin: it "
                                "is memory of device %d",
                                what, (unsigned long long)behind, (unsigned long long)b->bytes,
                                b->pointer.device);
        if (*some && (*some)->pointer.device != b->pointer.device)
            return guard_refuse(comm, kind, site,
                                "buffers on devices %d and %d; those of one call lie on one "
                                "device, or on the host",
                                (*some)->pointer.device, b->pointer.device);
        *some = b;
    }
    return 0;
}

static bool any_bytes(const struct device_buffer *all, uint32_t n)
{
    bool any = false;
    for (uint32_t i = 0; i < n; i++)
        any |= all[i].bytes != 0;
    return any;
}

static bool any_device(const struct device_buffer *all, uint32_t n)
{
    bool any = false;
    for (uint32_t i = 0; i < n; i++)
        any |= all[i].bytes && device_is(&all[i]);
    return any;
}

int device_check(struct tutti_comm *comm, struct coll *c, enum kind kind, uint32_t site,
                 const tutti_call *call, struct device_call *d)
{
    const struct device_buffer *some = NULL;
    memset(d, 0, sizeof *d);
    d->stream = call ? call->stream : NULL;
    int r = c->lists.n ? list_buffers(comm, c, kind, site, d) : even_buffers(comm, c, kind, d);
    if (r == 0)
        r = buffers_ask(comm, kind, site, d, d->given, d->gives, "send", &some);
    if (r == 0 && d->error == 0)
        r = buffers_ask(comm, kind, site, d, d->taken, d->takes, "receive", &some);
    d->in_device = any_device(d->given, d->gives);
    d->out_device = any_device(d->taken, d->takes);
    if (r == 0 && !some && !d->error) {
        if (d->stream && (any_bytes(d->given, d->gives) || any_bytes(d->taken, d->takes)))
            r = guard_refuse(comm, kind, site,
                             "call.stream is for device buffers; those of this call are the "
                             "host's");
        device_drop(d);
        return r;
    }
    if (r == 0 && d->error == 0) {
        struct text why = TEXT_IN(d->words);
        text_clear(&why);
        r = device_begin(d, &why);
        if (r == -EINVAL)
            r = guard_refuse(comm, kind, site, "%s", d->words);
        else if (r < 0) {           /* the operation fails with it, so that all ranks learn of it */
            d->error = r == -ENOMEM ? r : -EIO;
            r = 0;
        }
    }
    if (r < 0)
        device_drop(d);
    else {
        c->gpu.call = d;
        c->ways = &road_ways;
    }
    return r;
}

int device_refuse_asked(struct tutti_comm *comm, enum kind kind, uint32_t site, const char *what,
                        const void *at, size_t bytes)
{
    struct device_buffer b = { .at = at, .bytes = bytes };
    char words[200];
    struct text why = TEXT_IN(words);
    text_clear(&why);
    if (buffer_ask(&b, NULL, &why) < 0)
        return guard_refuse(comm, kind, site, "%s is %s", what, words);
    return device_is(&b)
        ? guard_refuse(comm, kind, site,
                       "%s is memory of device %d, and this function takes host memory", what,
                       b.pointer.device)
        : 0;
}
