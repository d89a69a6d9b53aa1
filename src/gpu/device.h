/* Job: hold the device buffers of one call: whose memory each is, the stream that orders them, and
 *      what of the call is under way on the device.
 * Owns: struct device_call. It is in the caller's frame, or, for work, in memory of its own.
 * Never: moves data between ranks (host_copy.h, pinned.h, direct.h); writes words of the arena. */
#ifndef TUTTI_GPU_DEVICE_H
#define TUTTI_GPU_DEVICE_H

#include "coll/coll.h"
#include "gpu/driver.h"

struct gpu;                             /* gpu/context.h: one device in this process */
struct device_streams;                                      /* gpu/streams.h: a comm's pair */
struct direct;                          /* gpu/direct.h: peers' memory, read in place */

/* One whole buffer of a call, on the device or on the host. */
struct device_buffer {
    const void *at;                                  /* as the caller gave it */
    /* of the call, from `at` on; 0: this rank gives or takes nothing here */
    size_t bytes;
    /* DRIVER_HOST: plain memory, read and written by the CPU */
    struct driver_pointer pointer;
};

enum device_state { DEVICE_NEW, DEVICE_ORDERED, DEVICE_COPYING, DEVICE_READY, DEVICE_PLACING };

struct device_call {
    struct gpu *gpu;            /* all device buffers of a call lie on one device. One reference */
    CUstream stream;            /* the caller's */
    /* All buffers that this rank gives and takes: one each in even parts, else one for each pointer
     * of the lists. */
    struct device_buffer *given, *taken;
    uint32_t gives, takes;
    struct device_buffer send, recv;                 /* of even parts: given[0], taken[0] */
    /* a given buffer is on the device; a taken one is */
    bool in_device, out_device;
    /* recorded in the caller's stream at the call; NULL: nothing to wait for */
    CUevent before;
    uint64_t asked;                                  /* clock_ns of the last look at it */
    /* that event's context if it is not the gpu's own, else NULL */
    CUcontext foreign;

    enum device_state state;
    struct device_streams *streams;                         /* set when the operation begins */
    struct direct *direct;                           /* until its end, if the road is direct */
    uint64_t marks[2];                               /* of the streams, when the operation began */
    int error;                                       /* the first failure of a copy */
    /* host_copy.c: copies from the device: the next buffer, */
    uint32_t at;
    size_t at_byte;                                  /* its next byte, */
    uint64_t pieces;                                 /* pieces asked for so far */
    bool all_asked;
    bool swapped;                                    /* the next three fields are set */
    /* the caller's buffers, while the operation works on copies (host_copy.c) */
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

/* True: the address is in one of the call's device buffers. */
bool device_holds(const struct device_call *d, const void *at);

/* The buffers are described. Takes a reference to their device and marks the caller's stream there.
   0, or -errno with *why: -EINVAL (the stream is being captured, or is not of this device), -EIO,
   -ENOMEM, or why there is no device. device_drop must follow in any case. */
int  device_begin(struct device_call *d, struct text *why);
void device_drop(struct device_call *d);

/* For work: copies *c->gpu.call into memory of its own. 0 or -ENOMEM. */
int  device_keep(struct coll *c);
/* For the roads: opens the streams, before the arrival. 0 or -errno, explained. */
int  device_open(struct coll *c);
/* As step(op), which costs the driver one exchange of modes and one push of the context at most. */
int  device_advance(struct op *op, int (*step)(struct op *op));
/* DONE: the caller's stream has done what it had to do before the call. Else WAITING, -errno. */
int  device_ready(struct coll *c);
/* Puts the streams' words into the report. Returns error. */
int  device_failed(struct coll *c, int error);
/* As streams_copy; remembers the first error. */
int  device_copy(struct coll *c, int side, void *to, const void *from, size_t bytes);
bool device_room(const struct coll *c, int side);
int  device_mark(struct coll *c, int side);
int  device_passed(struct coll *c, int side, uint64_t *passed);      /* of this operation's marks */

#endif
