/* Job: a comm's way to one GPU: a stream for what goes out of the device and one for what goes into
 *      it, how far each has come, the pipelines
 * that are registered for it, and its bounce memory.
 * Owns: tutti_comm.gpu.streams: made by the first operation with buffers on that GPU, closed
 *       with the comm.
 * Never: waits, but for streams_drain. Two comms share no stream: one comm's copies never stand
 *        behind another's. */
#ifndef TUTTI_GPU_STREAMS_H
#define TUTTI_GPU_STREAMS_H

#include "gpu/staging.h"
#include "group/comm.h"

/* from the caller's buffers into host memory, and back */
enum streams_side { STREAM_IN, STREAM_OUT };
enum { STREAM_MARKS = 8 };

struct device_streams {
    struct gpu *gpu;
    struct tutti_comm *comm;
    struct device_streams *next;
    struct streams_stream {
        CUstream stream;
        CUevent mark[STREAM_MARKS];
        uint64_t marks, passed;
    } side[2];
    struct bounce bounce[2];
    struct pin **pipelines;             /* [ranks of the comm] */
    bool busy;                          /* something may be under way */
    bool given_up;                      /* it did not end: nothing that it touches is used again */
    char words[500];                    /* of the last failure */
};

/* The comm's streams to this GPU. Whoever advances its operations, one thread at a time. 0,
 * -ENOMEM, -EIO with *why. */
int streams_of(struct tutti_comm *comm, struct gpu *gpu, struct device_streams **streams,
               struct text *why);

/* All of these begin and end by themselves with the GPU's context; errors are -ENOMEM or -EIO,
 * in streams->words. */
/* Copies; either address may be the device's. Host to host: at once, by the CPU. */
int streams_copy(struct device_streams *streams, int side, void *to, bool to_device,
                 const void *from, bool from_device, size_t bytes);
/* A mark behind all that this side has been given; at most STREAM_MARKS that have not been passed.
 * How many have, since the streams began. */
bool streams_room(const struct device_streams *streams, int side);
int  streams_mark(struct device_streams *streams, int side);
int  streams_passed(struct device_streams *streams, int side, uint64_t *passed);
/* 0, or -errno in streams->words: nothing can be asked of the device any more */
int  streams_lives(struct device_streams *streams);

/* The pipeline of member p lies there now: registers it. */
int streams_pipeline(struct device_streams *streams, uint32_t p, void *at, size_t bytes,
                     uint64_t number);
int  streams_bounce(struct device_streams *streams, int side, size_t bytes);

/* After a success: all has been waited for. */
void streams_ended(struct device_streams *streams);
/* After a failure: waits, a second at most, until nothing is under way; else gives the
 * streams up. */
void streams_drain(struct device_streams *streams);

#endif
