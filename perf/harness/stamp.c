/* The rate is a quotient of two differences, 20 ms apart, against CLOCK_MONOTONIC_RAW: good to 1 in
 * 100,000, far below what the machine's own speed drifts. */
#include "harness/stamp.h"

static double ns_per_tick = 1;
static uint64_t origin;

static uint64_t raw_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_RAW, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void stamp_calibrate(void)
{
    uint64_t ns = raw_ns(), now = ns;
    origin = stamp_now();
    while (now < ns + 20000000)
        now = raw_ns();
    ns_per_tick = (double)(now - ns) / (double)(stamp_now() - origin);
}

double stamp_ns(uint64_t ticks) { return (double)ticks * ns_per_tick; }

uint64_t stamp_ticks(double ns) { return (uint64_t)(ns / ns_per_tick); }

double stamp_seconds(void) { return stamp_ns(stamp_now() - origin) / 1e9; }
