/* Job: holds each point of `versus` with more ranks than CPUs against its floor, all or none, of
 *      the same rounds.
 * Owns: nothing.
 * Never: measures. */
#ifndef PERF_VERSUS_FLOOR_H
#define PERF_VERSUS_FLOOR_H

#include "harness/report.h"
#include "reports/rounds.h"

/* A table and a line for each state of the line: how many points are behind, and how many of these
   are where the fastest peer is below the floor, so that all or none cannot be as fast. Nothing
   where there are no floors. */
void versus_tell_floors(struct report *report, const struct rounds *all,
                        const struct point *points, int count);

#endif
