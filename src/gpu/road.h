/* Job: by which road an operation with device buffers goes, and its end.
 * Owns: nothing.
 * Never: the roads themselves (small.h, pinned.h, direct.h), what they have in
 *        common (device.h). */
#ifndef TUTTI_GPU_ROAD_H
#define TUTTI_GPU_ROAD_H

#include "coll/coll.h"

/* For c->ways, where c->gpu.call is set. choose: how it is advanced. keep: as device_keep. end:
   nothing of it is under way on the device afterwards, or its streams are given up; c's buffers are
   again what the caller said, and c->gpu.call is NULL. */
extern const struct call_ways road_ways;

#endif
