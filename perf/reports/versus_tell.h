/* Job: says what the rounds of `versus` prove: figures, tables, the list of points that are behind.
 * Owns: nothing.
 * Never: measures. */
#ifndef PERF_VERSUS_TELL_H
#define PERF_VERSUS_TELL_H

#include "harness/report.h"
#include "reports/rounds.h"

extern const char *const versus_title[VERSUS_SYSTEMS];     /* "Intel MPI" */

/* points: in the order of the tables: all sizes of an operation one after the other. */
void versus_tell(struct report *report, const struct rounds *all, const struct point *points,
                 int count);

#endif
