/* Job: a comm's way to one GPU: a stream for what goes out of the device and one for what goes into it, how far each has come, the rings
 * that are registered for it, and its bounce memory.
 * Owns: tutti_comm.lanes: made by the first operation with buffers on that GPU, closed with the comm.
 * Never: waits, but for lane_settle. Two comms share no stream: one comm's copies never stand behind another's. */
#ifndef TUTTI_GPU_LANE_H
#define TUTTI_GPU_LANE_H

#include "gpu/staging.h"
#include "group/comm.h"

enum lane_side { LANE_IN, LANE_OUT };                /* from the caller's buffers into host memory, and back */
enum { LANE_MARKS = 8 };

struct lane {
    struct gpu *gpu;
    struct tutti_comm *comm;
    struct lane *next;
    struct lane_stream { CUstream stream; CUevent mark[LANE_MARKS]; uint64_t marks, passed; } side[2];
    struct bounce bounce[2];
    struct pin **rings;                              /* [ranks of the comm] */
    bool busy;                                       /* something may be under way */
    bool given_up;                                   /* it did not end: nothing that it touches is used again */
    char words[500];                                 /* of the last failure */
};

/* The comm's lane to this GPU. Whoever advances its operations, one thread at a time. 0, -ENOMEM, -EIO with *why. */
int  lane_of(struct tutti_comm *comm, struct gpu *gpu, struct lane **lane, struct text *why);

/* All of these begin and end by themselves with the GPU's context; errors are -ENOMEM or -EIO, in lane->words. */
/* Copies; either address may be the device's. Host to host: at once, by the CPU. */
int  lane_copy(struct lane *lane, int side, void *to, bool to_device, const void *from, bool from_device, size_t bytes);
/* A mark behind all that this side has been given; at most LANE_MARKS that have not been passed. How many have, since the lane began. */
bool lane_room(const struct lane *lane, int side);
int  lane_mark(struct lane *lane, int side);
int  lane_passed(struct lane *lane, int side, uint64_t *passed);
int  lane_lives(struct lane *lane);                  /* 0, or -errno in lane->words: nothing can be asked of the device any more */

/* The ring of member p lies there now: registers it. */
int  lane_ring(struct lane *lane, uint32_t p, void *at, size_t bytes, uint64_t number);
int  lane_bounce(struct lane *lane, int side, size_t bytes);

/* After a success: all has been waited for. */
void lane_ended(struct lane *lane);
/* After a failure: waits, a second at most, until nothing is under way; else gives the lane up. */
void lane_settle(struct lane *lane);

#endif
