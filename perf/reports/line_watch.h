/* Job: times a cache line on its way from one CPU to another, now: between the two CPUs that the
 *      first two ranks of every job are pinned to.
 * Owns: a job of two ranks, asleep in between.
 * Never: says which times are near: harness/interval.h does. */
#ifndef PERF_LINE_WATCH_H
#define PERF_LINE_WATCH_H

#include "harness/report.h"

struct line_watch;

struct line_watch *line_watch_open(void);
/* One way, ns; the shortest of several tries, for whoever else runs makes it longer only. 0: no try
 * succeeded. */
double line_watch_ns(struct line_watch *w);
void line_watch_close(struct line_watch *w);
/* A remark: the median, the shortest and the longest of all looks, and in how many the two CPUs
   were near each other. Nothing of no looks. */
void line_watch_tell(struct report *report, const struct series *looks);

#endif
