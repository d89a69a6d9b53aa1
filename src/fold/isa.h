/* Job:   find which instruction sets of the tables this processor and its system can run.
 * Owns:  nothing.
 * Never: chooses the best (fold.c).
 *
 * The compiler's own query also asks the system whether it saves the wide registers. F16C is asked
 * by cpuid, since clang's query does not have it. cpuid costs a microsecond or more in a virtual
 * machine: not for every operation. The query must be initialised (__builtin_cpu_init) if a
 * constructor may use it. */
#ifndef FOLD_ISA_H
#define FOLD_ISA_H

#if defined(__x86_64__) || defined(__i386__)

#include <cpuid.h>

static inline int isa_has_avx2(void)
{
    unsigned a, b, c = 0, d;
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") && __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}

static inline int isa_has_avx512(void)
{
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

#else

static inline int isa_has_avx2(void) { return 0; }
static inline int isa_has_avx512(void) { return 0; }

#endif

#endif
