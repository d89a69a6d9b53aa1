/* Job: barriers as contenders run them, `times` times.
 * Owns: r->nth.
 * Never: a figure. */
#ifndef PERF_BARRIER_CONTENDERS_H
#define PERF_BARRIER_CONTENDERS_H

#include "harness/job.h"

int barriers_tutti(struct rank *r, uint64_t times);
/* of one float: a barrier that carries something */
int barriers_all_reduce(struct rank *r, uint64_t times);
/* harness/bare.h; waiting ranks yield if r->crowded, else they spin */
int barriers_exchange(struct rank *r, uint64_t times);
/* two ranks; with the library's own waits */
int barriers_exchange_waits(struct rank *r, uint64_t times);
int barriers_flags(struct rank *r, uint64_t times);
int barriers_central(struct rank *r, uint64_t times);
int barriers_yields(struct rank *r, uint64_t times);              /* central, and always yields */
int barriers_dissemination(struct rank *r, uint64_t times);
int barriers_mcs(struct rank *r, uint64_t times);
int barriers_posix(struct rank *r, uint64_t times);

#endif
