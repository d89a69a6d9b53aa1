/* Job: how large messages may be, so that the buffers of all ranks fit into the memory
 *      that is free.
 * Owns: nothing.
 * Never: reserves anything. */
#ifndef PERF_MEMORY_BUDGET_H
#define PERF_MEMORY_BUDGET_H

#include "reports/question.h"

/* Of each of a rank's two pools: two buffers in turn, but for those that no cache holds anyway.
 * Sizes are 4 bytes, 16, 64 … up to most. */
size_t budget_pool(const struct ask_sizes *s, int ranks, size_t most);

/* The largest message, up to s->most, whose buffers in so many jobs take no more than half of the
   memory that is free; a remark where that is less than was asked for. */
size_t budget_most(const struct question *p, const struct ask_sizes *s, int jobs);

#endif
