/* Job: one call's device buffers: whose they are, the stream they are ordered by, and what of it is
 *      under way on the device.
 * Owns: struct device_call; it lies in the caller's frame, or, for work, in memory of its own.
 * Never: what travels between ranks (small.h, pinned.h, direct.h), and no words of the arena. */
#ifndef TUTTI_GPU_DEVICE_H
#define TUTTI_GPU_DEVICE_H

#include "coll/coll.h"
#include "gpu/driver.h"

struct gpu;                             /* gpu/context.h: one device in this process */
struct device_streams;                                      /* gpu/streams.h: a comm's way to it */
struct direct;                          /* gpu/direct.h: peers' memory that is read where it lies */

/* One buffer of a call, whole: what lies at `at`, or that it is the host's. */
struct device_buffer {
    const void *at;                                  /* as the caller gave it */
    /* of the call, from `at` on; 0: this rank gives, or takes, nothing there */
    size_t bytes;
    /* DRIVER_HOST: plain memory, read and written by the CPU */
    struct driver_pointer pointer;
};

enum device_state { DEVICE_NEW, DEVICE_ORDERED, DEVICE_COPYING, DEVICE_READY, DEVICE_PLACING };

struct device_call {
    struct gpu *gpu;            /* all device buffers of a call lie on one device. One reference */
    CUstream stream;            /* the caller's */
    /* All that this rank gives and takes: one each in even parts, else one for each pointer of
     * the lists. */
    struct device_buffer *given, *taken;
    uint32_t gives, takes;
    struct device_buffer send, recv;                 /* of even parts: given[0], taken[0] */
    /* some of what is given, taken, lies on the device */
    bool in_device, out_device;
    /* in the caller's stream, at the call; NULL: nothing to wait for */
    CUevent before;
    /* the context of that event where it is not the gpu's own, else NULL */
    CUcontext foreign;

    enum device_state state;
    struct device_streams *streams;                         /* from the operation's beginning on */
    struct direct *direct;                           /* until its end, if it is to go that way */
    uint64_t marks[2];                               /* of the streams when it began */
    int error;                                       /* the first failure of a copy */
    /* small.c: how far what is given has been asked of the device: buffer, */
    uint32_t at;
    size_t at_byte;                                  /* byte, */
    uint64_t pieces;                                 /* pieces */
    bool all_asked;
    bool swapped;                                    /* these hold: */
    /* what the call said, while the operation works on copies (small.c) */
    const void *caller_send;
    void *caller_recv;
    struct vector_args caller_lists;
    void **copies;                  /* lists of pointers to these copies */
    size_t scratch;                 /* bytes of one slot of the bounce memory for folded results */
    char words[300];                /* of an error before the operation */
    bool kept;                      /* in memory of its own */
};

static inline bool device_is(const struct device_buffer *b)
{
    return b->pointer.memory == DRIVER_DEVICE || b->pointer.memory == DRIVER_MANAGED;
}

/* Is this an address in one of the call's device buffers? */
bool device_holds(const struct device_call *d, const void *at);

/* The buffers are described: takes a reference on their device and marks the caller's stream there.
   0, or -errno in words: -EINVAL (the stream captures, is not of this device), -EIO, -ENOMEM, or
   why there is no device. device_drop is due in any case. */
int  device_begin(struct device_call *d, struct text *why);
void device_drop(struct device_call *d);

/* For work: puts *c->gpu.call into memory of its own. 0 or -ENOMEM. */
int  device_keep(struct coll *c);
/* For the roads. */
int  device_open(struct coll *c);   /* the streams; before the arrival. 0 or -errno, explained */
/* has what the caller's stream had to do before the call ended? DONE, WAITING, -errno */
int  device_ready(struct coll *c);
/* puts the streams' words into the report; returns error */
int  device_failed(struct coll *c, int error);
/* streams_copy; remembers the first error */
int  device_copy(struct coll *c, int side, void *to, const void *from, size_t bytes);
bool device_room(const struct coll *c, int side);
int  device_mark(struct coll *c, int side);
int  device_passed(struct coll *c, int side, uint64_t *passed);      /* of this operation's marks */

#endif
