/* Job: keep a comm's streams to one GPU: one for copies out of the device, one for copies into it,
 *      how far each has come, the pipelines registered for it, its bounce memory and its slots.
 * Owns: tutti_comm.gpu.streams. The first operation with buffers on that GPU makes it; it closes
 *       with the comm.
 * Never: waits, except in streams_drain; shares a stream between comms, so one comm's copies never
 *        stand behind another's.
 *
 * E78 passed: the device writes a mark's number into a word of host memory, behind all that the
 *    stream was given before (release, by CUDA). The host loads it (acquire). */
#ifndef TUTTI_GPU_STREAMS_H
#define TUTTI_GPU_STREAMS_H

#include "gpu/device_slots.h"
#include "gpu/staging.h"
#include "group/comm.h"

/* from the caller's buffers into host memory, and back */
enum streams_side { STREAM_IN, STREAM_OUT };
enum { STREAM_MARKS = 8 };
/* A copy of fewer bytes to a device is one of two rows (streams.c). */
enum { STREAM_ROWS_BELOW = 64 << 10 };

struct device_streams {
    struct gpu *gpu;
    struct tutti_comm *comm;
    struct device_streams *next;
    struct streams_stream {
        CUstream stream;
        /* where the device writes the numbers of marks that it has come to; NULL: */
        shared32 *word;
        CUdeviceptr word_seen;                       /* the device's address of it */
        CUevent mark[STREAM_MARKS];                  /* events instead */
        uint64_t marks, passed;
        uint64_t asked;             /* clock_ns when the driver was last asked, or a mark put */
    } side[2];
    struct bounce bounce[2], words_of_marks;
    struct device_slots slots;
    struct pin **pipelines;             /* [ranks of the comm] */
    bool busy;                          /* something may be under way */
    bool given_up;                      /* copies did not end: their memory is not used again */
    char words[500];                    /* of the last failure */
};

/* The comm's streams to this GPU, made at first use. Called by the thread that advances the comm's
 * operations, one at a time. 0, -ENOMEM, -EIO with *why. */
int streams_of(struct tutti_comm *comm, struct gpu *gpu, struct device_streams **streams,
               struct text *why);

/* All of these enter and leave the GPU's context by themselves. Errors are -ENOMEM or -EIO, with
 * the reason in streams->words. */
/* Copies. Either address may be the device's. Host to host: at once, by the CPU. */
int streams_copy(struct device_streams *streams, int side, void *to, bool to_device,
                 const void *from, bool from_device, size_t bytes);
/* mark: puts a mark after all that this side was given. room: there is room for one more; at most
 * STREAM_MARKS have not passed. passed: how many have passed since the streams began. */
bool streams_room(const struct device_streams *streams, int side);
int  streams_mark(struct device_streams *streams, int side);
int  streams_passed(struct device_streams *streams, int side, uint64_t *passed);
/* 0. -errno, in streams->words: the device can be asked nothing any more. */
int  streams_lives(struct device_streams *streams);

/* Registers the pipeline of member p, which is there now. */
int streams_pipeline(struct device_streams *streams, uint32_t p, void *at, size_t bytes,
                     uint64_t number);
int  streams_bounce(struct device_streams *streams, int side, size_t bytes);

/* After a success: all copies have been waited for. */
void streams_ended(struct device_streams *streams);
/* After a failure: waits until nothing is under way, a second at most. After that it gives the
 * streams up. */
void streams_drain(struct device_streams *streams);

#endif
