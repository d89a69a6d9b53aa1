/* Job: holds each point of `versus` that has a floor against it, of the same rounds: of two ranks,
 *      and with more ranks than CPUs.
 * Owns: nothing.
 * Never: measures. */
#ifndef PERF_VERSUS_FLOOR_H
#define PERF_VERSUS_FLOOR_H

#include "harness/report.h"
#include "reports/rounds.h"

/* A table, and for each state of the line and kind of floor a line: how many points are behind, and
   how many of these are where the fastest peer is below the floor, so that the copies that must be
   cannot be as fast. Nothing where there are no floors. */
void versus_tell_floors(struct report *report, const struct rounds *all,
                        const struct point *points, int count);

#endif
