/* Job: what it costs to fetch bytes out of another CPU's cache, and what that says of where the
 *      two CPUs are.
 * Owns: nothing.
 * Never: which CPUs the ranks have. */
#ifndef PERF_CACHE_TRANSFER_H
#define PERF_CACHE_TRANSFER_H

#include "reports/question.h"

/* Copies of 4 KiB to 1 MiB that rank 1 makes of what rank 0 has just written, beside those of what
 * it has written itself. */
void ask_cache_transfer(const struct question *p);

/* Where two CPUs seem to be that hand each other a line in so many ns: a word or two for
 * a sentence. */
const char *cache_transfer_placement(double line_ns);

#endif
