/* Job: what it costs to hand one CPU from a process to another.
 * Owns: a child, while it measures.
 * Never: ranks. */
#ifndef PERF_CONTEXT_SWITCH_H
#define PERF_CONTEXT_SWITCH_H

#include "harness/series.h"

/* Adds `samples` times of one switch, ns, each the mean of a thousand. */
void context_switch_measure(struct series *to, int samples);

#endif
