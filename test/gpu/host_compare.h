/* Job: every collective called twice, on host memory and on a device, and what comes out compared
 *      byte by byte.
 * Owns: a rank's four areas: what it gives and takes, on the host and on the device.
 * Never: CUDA in the test's own process. What the host's collectives do is not judged
 *        here (test/coll). */
#ifndef TUTTI_TEST_GPU_HOST_COMPARE_H
#define TUTTI_TEST_GPU_HOST_COMPARE_H

#include "child_case.h"

#include "support/ranks.h"

enum compare_kind {
    R_BROADCAST, R_REDUCE, R_ALL_REDUCE, R_REDUCE_SCATTER, R_ALL_GATHER, R_GATHER, R_SCATTER,
    R_ALL_TO_ALL, R_SCAN, R_EXSCAN, R_ALL_GATHER_V, R_GATHER_V, R_SCATTER_V, R_REDUCE_SCATTER_V,
    R_ALL_TO_ALL_V, R_MANY, R_SAME, R_KINDS
};

/* Which of a rank's two areas are the device's. */
enum { ON_HOST, SEND_ON_DEVICE = 1, RECV_ON_DEVICE = 2, ON_DEVICE = 3 };

struct compared {
    enum compare_kind kind;
    size_t count;
    bool in_place;
    int where;
    tutti_call *call;
    bool wait;
};

/* Begin: CUDA, the areas for blocks of up to `most` elements; 0, or 1 with words. device: its
 * ordinal; -1: this rank opens no CUDA. */
int compare_begin(tutti_comm *world, size_t most, int device);
/* Both calls; 0, or 1 where they differ, or the device's has failed. */
int compare_run(tutti_comm *world, const struct compared *round);
/* Only the device's call; its result. */
int compare_call(tutti_comm *world, const struct compared *round);
/* Lets all go, leaves the world, and ends the process as a program ends: what the driver checks at
 * the end, it checks. */
int compare_end(tutti_comm *world);

extern float *compare_given, *compare_taken;             /* the host's */
extern CUdeviceptr compare_in, compare_out;              /* the device's */

#endif
