/* Job: give time stamps cheap enough for every operation, and the monotonic clock for deadlines.
 * Owns: nothing.
 * Never: sleeps, keeps a deadline, makes a calibration that takes time.
 *
 * A tick is one read of the time stamp counter (x86: rdtsc, Armv8: cntvct; elsewhere nanoseconds).
 * Ticks become nanoseconds by two points: a pair (tick, ns) taken once at the arena's creation and
 * one taken now. The further apart they are, the better the rate; no rank ever waits for a
 * calibration. */
#ifndef TUTTI_BASE_CLOCK_H
#define TUTTI_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* CPU time of the calling thread: a system call. */
static inline uint64_t clock_cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline uint64_t clock_tick(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t t;
    __asm__ __volatile__("mrs %0, cntvct_el0" : "=r"(t));
    return t;
#else
    return clock_ns();
#endif
}

/* The same behind all loads before it. */
static inline uint64_t clock_tick_behind(void)
{
#if defined(__x86_64__)
    unsigned cpu;
    return __builtin_ia32_rdtscp(&cpu);
#elif defined(__aarch64__)
    __asm__ __volatile__("isb" ::: "memory");
    return clock_tick();
#else
    return clock_tick();
#endif
}

struct clock_point { uint64_t tick, ns; };

/* A pair taken together: the tick lies between two reads of the clock. */
struct clock_point clock_now(void);

/* Ticks a nanosecond, between two points. Kept within the range of real processors, also if a
   counter stands still, jumps or differs between CPUs: the length of a spin depends on it. */
double clock_rate(struct clock_point then, struct clock_point now);

/* The time of a tick on the monotonic clock, by the line through `then` and `now`. Ticks before
 * `then` give then.ns. */
uint64_t clock_tick_ns(uint64_t tick, struct clock_point then, struct clock_point now);

#endif
