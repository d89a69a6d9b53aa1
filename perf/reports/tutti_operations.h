/* Job: the library as one of the systems that are measured.
 * Owns: nothing.
 * Never: a figure. */
#ifndef PERF_TUTTI_OPERATIONS_H
#define PERF_TUTTI_OPERATIONS_H

#include "harness/operation.h"

extern const struct system tutti_system;

#endif
