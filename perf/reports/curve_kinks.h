/* Job: finds kinks in how a time grows: steps that take much longer than what is done grows, and
 *      those that take less time for more.
 * Owns: the rules of what is to be expected.
 * Never: measures, says why. */
#ifndef PERF_CURVE_KINKS_H
#define PERF_CURVE_KINKS_H

#include "harness/operation.h"
#include "harness/report.h"

/* A measured time: its median, and the middle half of its samples. at: bytes or ranks. count 0: it
 * was not measured. */
struct kink_point { double at, low, median, high; size_t count; };
struct kink_point kink_point(double at, const struct series *single);

enum kink { KINK_NONE, KINK_STEEP, KINK_FALL };

/* From a to b, where `expected` times the time is what one would say. crowded: of ranks that share
 * CPUs, whose times spread more. */
enum kink kink_between(const struct kink_point *a, const struct kink_point *b, double expected,
                       bool crowded);

/* How many times longer an operation of `to` ranks takes than one of `from` on so many CPUs, if
 * nothing is wrong; 0: nothing can be said. */
double kink_expected(enum operation_id op, size_t bytes, int from, int to, int cpus);

/* A remark for each kink of a curve; returns how many there are. That more bytes take less time is
 * a contradiction, and marked as such. */
int kink_sizes(struct report *r, enum operation_id op, int ranks, const struct kink_point *points,
               int count);
int kink_ranks(struct report *r, enum operation_id op, size_t bytes,
               const struct kink_point *points, int count);

#endif
