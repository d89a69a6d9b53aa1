/* Job: the library as one of the systems that are measured.
 * Owns: nothing.
 * Never: a figure. */
#ifndef PERF_TUTTI_H
#define PERF_TUTTI_H

#include "harness/operation.h"

extern const struct system part_tutti;

#endif
