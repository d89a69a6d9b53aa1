/* Job: time stamps for measuring, and their conversion.
 * Owns: the rate of the time stamp counter, measured once before the ranks are forked.
 * Never: deadlines. */
#ifndef PERF_STAMP_H
#define PERF_STAMP_H

#include "base/clock.h"

/* A tick that is not read before what precedes it is done: without the fence a processor that
   guesses the end of a spin right would read the counter some nanoseconds early. */
static inline uint64_t stamp_now(void)
{
#if defined(__x86_64__)
    __builtin_ia32_lfence();
#elif defined(__aarch64__)
    __asm__ __volatile__("isb" ::: "memory");
#endif
    return clock_tick();
}

void stamp_calibrate(void);                /* takes 20 ms */
double stamp_ns(uint64_t ticks);           /* a difference of two stamps, in nanoseconds */
uint64_t stamp_ticks(double ns);
double stamp_seconds(void);                /* since stamp_calibrate */

#endif
