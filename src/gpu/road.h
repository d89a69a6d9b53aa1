/* Job: choose the road of an operation with device buffers, and end the operation.
 * Owns: nothing.
 * Never: implements a road (host_copy.h, pinned.h, direct.h) or what roads share (device.h). */
#ifndef TUTTI_GPU_ROAD_H
#define TUTTI_GPU_ROAD_H

#include "coll/coll.h"

/* For c->ways, if c->gpu.call is set. choose: sets how the operation advances. keep: device_keep.
   end: nothing of the operation is under way on the device any more, or its streams are given up;
   c's buffers are again what the caller gave; c->gpu.call is NULL. */
extern const struct call_ways road_ways;

#endif
